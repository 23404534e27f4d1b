"""`margincal decide`: from saved logits to a file, its words, and weights that need no file."""

from __future__ import annotations

import nibabel
import numpy as np
import pytest
import torch

from monai_margincal import ClassOffsets, fit_class_offsets
from monai_margincal.cli import main
from monai_margincal.decisions.offsets_summary import summary_lines
from monai_margincal.decisions.weights_digest import weights_digest


def case(seed, size=(9, 8, 7)):
    """Logits of the lesion that are too low, and the label."""
    generator = np.random.default_rng(seed)
    label = (generator.random(size) < 0.1).astype(np.uint8)
    gap = 3.0 * (2.0 * label - 1) + 2 * generator.standard_normal(size) - 4
    return np.stack([0 * gap, gap]).astype(np.float32), label


@pytest.fixture
def folder(tmp_path):
    for name in ("logits", "labels"):
        (tmp_path / name).mkdir()
    for seed in range(4):
        logits, label = case(seed)
        np.save(tmp_path / "logits" / f"c{seed}.npy", logits)
        nibabel.save(nibabel.Nifti1Image(label, np.eye(4)), tmp_path / "labels" / f"c{seed}.nii.gz")
    return tmp_path


@pytest.fixture
def expected():
    found = [tuple(map(torch.from_numpy, case(seed))) for seed in range(4)]
    return fit_class_offsets(found, 2, class_names=["background", "lesion"], progress=False)


def fit(folder, *words):
    return main(
        ["decide", "fit", str(folder), "--output", str(folder / "d.json"), "--names", "background", "lesion", *words]
    )


def test_fit_is_the_fit_of_the_library(folder, expected, capsys):
    assert fit(folder, "--note", "drawn") == 0
    found = ClassOffsets.from_json(folder / "d.json")
    assert found.offsets == expected.offsets
    assert found.offsets[1] > 0
    assert found.fitted_on == {**expected.fitted_on, "note": "drawn"}
    shown = capsys.readouterr().out
    assert main(["decide", "show", str(folder / "d.json")]) == 0
    lines = capsys.readouterr().out
    assert shown == lines + f"written: {folder / 'd.json'}\n"
    threshold = 1 / (1 + np.exp(found.offsets[1]))
    assert lines.startswith(f"lesion: offset {found.offsets[1]:+g}, threshold {threshold:.3f} on its probability\n")
    assert f"fitted on 4 cases, {4 * 9 * 8 * 7:,} voxels, for the iou of all voxels together" in lines
    assert "argmax: lesion iou" in lines
    gain, error = (found.fitted_on[key] for key in ("cross_fitted_gain", "standard_error"))
    assert gain > 2 * error > 0
    assert f"cross-fitted gain of the foreground mean: {gain:+.4f}, standard error {error:.4f} (4 folds)" in lines


def test_cases_of_a_patient_stay_together(folder, capsys):
    (folder / "patients.csv").write_text("case,patient\nc0,a\nc1,a\nc2,b\nc3,b\n")
    assert fit(folder, "--groups", str(folder / "patients.csv")) == 0
    found = ClassOffsets.from_json(folder / "d.json")
    cases = [tuple(map(torch.from_numpy, case(seed))) for seed in range(4)]
    expected = fit_class_offsets(cases, 2, class_names=["background", "lesion"], progress=False, groups=list("aabb"))
    assert found == expected
    assert "fitted on 4 cases of 2 groups, " in capsys.readouterr().out
    (folder / "patients.csv").write_text("case,patient\n" + "".join(f"c{seed},a\n" for seed in range(4)))
    assert fit(folder, "--groups", str(folder / "patients.csv")) == 1
    assert "found 4 cases of one group, expected two or more" in capsys.readouterr().err


def test_a_gain_that_may_be_chance_is_told():
    known = {"cross_fitted_gain": 0.0, "folds": 5, "unclear": {"gain": 0.0421, "standard_error": 0.0283}}
    assert summary_lines(ClassOffsets([0, 0], fitted_on=known))[-1] == (
        "argmax is kept: a cross-fitted gain of +0.0421, standard error 0.0283, is not clear of chance (5 folds)"
    )


@pytest.mark.parametrize("form", ["npz", "nifti", "one logit", "float16"])
def test_other_forms_of_the_logits(form, folder, expected):
    for seed in range(4):
        logits, _ = case(seed)
        path = folder / "logits" / f"c{seed}.npy"
        path.unlink()
        if form == "npz":
            np.savez_compressed(path.with_suffix(".npz"), case="c", logits=logits)
        elif form == "float16":
            np.save(path, logits.astype(">f2"))
        else:
            volume = np.moveaxis(logits, 0, -1) if form == "nifti" else logits[1]
            nibabel.save(nibabel.Nifti1Image(volume, np.eye(4)), path.with_suffix(".nii.gz"))
    ending = {"npz": "npz", "float16": "npy"}.get(form, "nii.gz")
    assert fit(folder, "--logits", f"logits/{{case}}.{ending}") == 0
    found = ClassOffsets.from_json(folder / "d.json")
    assert found.offsets[1] == pytest.approx(expected.offsets[1], abs=0.11 if form == "float16" else 0)


def test_options_reach_the_fit(folder):
    assert (
        fit(folder, "--score", "dice", "--per-case", "--folds", "2", "--num-classes", "2", "--ignore-index", "255") == 0
    )
    known = ClassOffsets.from_json(folder / "d.json").fitted_on
    assert (known["score"], known["pooled"], known["folds"]) == ("dice", False, 2)


def failing(folder, capsys, *words):
    assert main(list(words)) == 1
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    return errors


def test_what_cannot_be_fitted_is_named(folder, capsys):
    base = ["decide", "fit", str(folder), "--output", str(folder / "d.json")]
    assert "w.pt: found no such file, expected a state dict" in failing(
        folder, capsys, *base, "--weights", f"{folder}/w.pt"
    )
    assert "found ['a', 'b', 'c'], expected 2 names" in failing(folder, capsys, *base, "--names", "a", "b", "c")
    assert "c0.npy: found logits of shape (2, 9, 8, 7), expected one case, channel first, of 4" in failing(
        folder, capsys, *base, "--num-classes", "4"
    )
    np.save(folder / "logits" / "c2.npy", np.zeros((2, 3, 3), np.float32))
    assert f"{folder}/logits/c2.npy: found labels of shape (9, 8, 7) for logits of shape (2, 3, 3)" in failing(
        folder, capsys, *base
    )
    np.savez(folder / "logits" / "c2.npz", a=np.zeros(2), b=np.zeros(2))
    (folder / "logits" / "c2.npy").unlink()
    assert "no image of the pattern 'logits/{case}.npy' for the labels" in failing(folder, capsys, *base)
    for seed in (0, 1, 3):
        (folder / "labels" / f"c{seed}.nii.gz").unlink()
        (folder / "logits" / f"c{seed}.npy").unlink()
    assert "found one case, expected two or more" in failing(folder, capsys, *base, "--logits", "logits/{case}.npz")
    assert not (folder / "d.json").exists()
    (folder / "d.json").write_text("{}")
    assert "d.json: found a file that holds no class offsets" in failing(folder, capsys, *base)


def test_an_archive_of_several_arrays_is_refused(folder, capsys):
    for seed in range(4):
        np.savez(folder / "logits" / f"c{seed}.npz", a=np.zeros(2), b=np.zeros(2))
    base = ["decide", "fit", str(folder), "--output", str(folder / "d.json"), "--logits", "logits/{case}.npz"]
    assert "c0.npz: found the arrays ['a', 'b'], expected one, or one named 'logits'" in failing(folder, capsys, *base)


@pytest.fixture
def weights(tmp_path):
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(4, 2, 1))
    torch.save(network.state_dict(), tmp_path / "model.pt")
    return network, tmp_path / "model.pt"


def test_baked_weights_decide_alike(weights, tmp_path, capsys):
    network, path = weights
    offsets = ClassOffsets([0, 0.25], ["a", "b"], {"weights": weights_digest(network.state_dict())})
    offsets.to_json(tmp_path / "decision.json")
    words = ["decide", "bake", str(path), str(tmp_path / "decision.json"), str(tmp_path / "baked.pt")]
    assert main(words) == 0
    expected = f"ClassOffsets(a: +0, b: +0.25) in 2.bias\nwritten: {tmp_path / 'baked.pt'}\n"
    assert capsys.readouterr().out == expected
    image = torch.randn(2, 1, 30, 30)
    with torch.no_grad():
        logits = network(image)
        network.load_state_dict(torch.load(tmp_path / "baked.pt", weights_only=True))
        found = network(image).argmax(1)
    close = (logits[:, 1] + 0.25 - logits[:, 0]).abs() < 1e-5
    assert torch.equal(found[~close], offsets(logits)[~close])
    assert not torch.equal(found, logits.argmax(1))
    assert "baked.pt exists and is not overwritten" in failing(tmp_path, capsys, *words)
    again = [*words[:2], str(tmp_path / "baked.pt"), words[3], str(tmp_path / "twice.pt")]
    assert "baked.pt: found weights with the offsets [0.0, 0.25] in '2.bias' already" in failing(
        tmp_path, capsys, *again
    )
    assert not (tmp_path / "twice.pt").exists()


def test_other_weights_classes_and_files_are_refused(weights, tmp_path, capsys):
    _, path = weights
    out = str(tmp_path / "out.pt")
    decision = tmp_path / "decision.json"
    ClassOffsets([0, 1], fitted_on={"weights": "sha256:0"}).to_json(decision)
    assert f"{path}: found other weights than those that {decision} was fitted for" in failing(
        tmp_path, capsys, "decide", "bake", str(path), str(decision), out
    )
    ClassOffsets([0, 1, 2]).to_json(decision)
    assert f"{path}: found 0 biases of convolutions that could give the logits of 3 classes" in failing(
        tmp_path, capsys, "decide", "bake", str(path), str(decision), out
    )
    torch.save({"network": {"a": torch.zeros(1)}}, tmp_path / "state.pt")
    assert "state.pt: found no plain state dict, expected names and tensors" in failing(
        tmp_path, capsys, "decide", "bake", str(tmp_path / "state.pt"), str(decision), out
    )
    assert "none.pt: no such file, expected weights" in failing(
        tmp_path, capsys, "decide", "bake", str(tmp_path / "none.pt"), str(decision), out
    )
    assert "none.json: no such file, expected a JSON file of class offsets" in failing(
        tmp_path, capsys, "decide", "show", str(tmp_path / "none.json")
    )
    assert not (tmp_path / "out.pt").exists()


def test_a_sub_verb_is_needed(capsys):
    with pytest.raises(SystemExit) as raised:
        main(["decide"])
    assert raised.value.code == 2
    assert "fit|show|bake" in capsys.readouterr().err
