"""From a training to a mask: the decision is fitted, said, taken, overruled and refused, whatever is written with it."""

from __future__ import annotations

import csv
import logging
import sys
import types

import nibabel
import numpy as np
import pytest
import torch
from metrics_rows import last_metrics

from monai_margincal.decisions import ClassOffsets
from monai_margincal.decisions.weights_digest import weights_digest
from monai_margincal.networks import COPLENet

NAMES = ["background", "lesion"]
FEATURES = [8, 16, 32, 64, 128]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Five scans with a bright lesion each; without air, so that nothing is cropped."""
    root = tmp_path_factory.mktemp("data")
    for index in range(5):
        generator = np.random.default_rng(index)
        label = np.zeros((48, 40, 4), np.uint8)
        label[8 : 12 + 3 * index, 10:24, 1:3] = 1
        image = (generator.normal(-700, 150, label.shape) + 350.0 * label).astype(np.int16)
        for kind, array in (("images", image), ("labels", label)):
            (root / kind).mkdir(exist_ok=True)
            nibabel.save(nibabel.Nifti1Image(array, np.diag([-0.7, 0.7, 2.0, 1.0])), root / kind / f"c{index}.nii.gz")
    return root


@pytest.fixture(scope="module")
def flags(data):
    return {"dataset_dir": data, "val_cases": ["c0", "c2", "c4"], "features": FEATURES, "device": "cpu"}


@pytest.fixture(scope="module")
def trained(command, flags, tmp_path_factory):
    recipe = {"epochs": 4, "val_interval": 1, "patch_size": [32, 32], "learning_rate": 0.005, "batch_size": 1}
    return command(tmp_path_factory.mktemp("trained"), ("train",), **flags, **recipe)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A random network whose logits lie close together, so that offsets change its masks."""
    torch.manual_seed(0)
    network = COPLENet(features=FEATURES, norm="group")
    network.out_conv.bias.data[:] = torch.tensor([0.3, 0.0])
    path = tmp_path_factory.mktemp("weights") / "model.pt"
    torch.save(network.state_dict(), path)
    return path


@pytest.fixture
def infer(workflow, flags, tmp_path):
    """The mask of one scan, as (X, Y, Z)."""

    def run(configs=("inference",), **overrides):
        given = {key: value for key, value in flags.items() if key in ("dataset_dir", "features")}
        workflow(
            configs, "infer", **{**given, "dataset_dir": str(flags["dataset_dir"]), "cases": "c2", **overrides}
        ).run()
        return np.asarray(nibabel.load(tmp_path / "eval" / "images" / "c2_mask.nii.gz").dataobj)

    return run


def belonging(folder):
    stored = weights_digest(torch.load(folder / "model.pt", weights_only=True))
    return ClassOffsets.from_json(folder / "decision.json").fitted_on["weights"] == stored


def test_training_leaves_the_decision_of_its_best_weights(trained):
    assert belonging(trained.cwd / "models")
    offsets = ClassOffsets.from_json(trained.cwd / "models" / "decision.json")
    assert offsets.class_names == ("background", "lesion")
    assert offsets.fitted_on["cases"] == 3
    assert offsets.fitted_on["voxels"] == 3 * 48 * 40 * 4


def test_evaluation_says_what_argmax_and_offsets_give(command, flags, trained):
    stored = (trained.cwd / "models" / "decision.json").read_text()
    run = command(trained.cwd, ("train", "evaluate"), **flags)
    assert (trained.cwd / "models" / "decision.json").read_text() == stored
    assert "kept models/decision.json, which exists" in run.output
    found = last_metrics(trained.cwd / "eval" / "metrics.csv")
    iou, recall, precision = (found[f"val_iou{word}_lesion"] for word in ("", "_recall", "_precision"))
    assert f"argmax: lesion iou {iou:.4f}, recall {recall:.4f}, precision {precision:.4f}" in run.output
    assert "with offsets: lesion iou " in run.output
    assert "with the offsets of models/decision.json: lesion iou " in run.output
    assert "cross-fitted gain of the foreground mean: +" in run.output


def test_evaluation_writes_where_it_is_told(command, flags, trained):
    stored = (trained.cwd / "models" / "decision.json").read_text()
    command(trained.cwd, ("train", "evaluate"), **flags, decision="mine/d.json")
    assert (trained.cwd / "mine" / "d.json").read_text() == stored, "the same weights on the same cases"
    run = command(trained.cwd, ("train", "evaluate"), **flags, decision="argmax")
    assert "cross-fitted" not in run.output
    assert not list(trained.cwd.glob("**/argmax"))


def test_inference_takes_it_and_says_so(command, flags, trained):
    given = {key: flags[key] for key in ("dataset_dir", "features", "device")}
    run = command(trained.cwd, ("inference",), **given, output_dir="masks", cases="c2")
    (line,) = [text for text in run.output.splitlines() if " decision: " in text]
    assert "decision: models/decision.json: ClassOffsets(background: +0, lesion: " in line


@pytest.fixture
def decided(weights):
    """A decision beside the weights, which changes masks."""
    state = torch.load(weights, weights_only=True)
    path = weights.parent / "decision.json"
    ClassOffsets([0.0, 0.35], NAMES, {"weights": weights_digest(state)}).to_json(path)
    yield path
    path.unlink()


def test_every_output_is_of_the_decided_mask(infer, weights, decided, tmp_path):
    """Decided batch by batch, or from logits that are kept for a map of probabilities: one mask, which is not argmax's."""
    plain = infer(checkpoint=str(weights), decision="argmax")
    masks = {}
    for outputs in ("mask,volumes,overlay", "mask,volumes,overlay,probability"):
        masks[outputs] = infer(checkpoint=str(weights), outputs=outputs)
        with (tmp_path / "eval" / "volumes.csv").open(newline="") as file:
            (row,) = csv.DictReader(file)
        assert int(row["lesion_voxels"]) == (masks[outputs] == 1).sum()
    first, second = masks.values()
    assert np.array_equal(first, second)
    probability = np.asarray(nibabel.load(tmp_path / "eval" / "images" / "c2_probability.nii.gz").dataobj)
    surely = np.abs(probability - 1 / (1 + np.exp(0.35))) > 1e-4
    assert np.array_equal((probability > 0.5)[surely], (first == 1)[surely]) is False
    assert np.array_equal((probability > 1 / (1 + np.exp(0.35)))[surely], (first == 1)[surely])
    assert (plain == 1).sum() < (first == 1).sum()


def test_another_file_overrules(infer, weights, decided, tmp_path):
    ClassOffsets([0.0, 50.0]).to_json(tmp_path / "all.json")
    assert infer(checkpoint=str(weights), decision=str(tmp_path / "all.json")).all()


def test_the_tensorrt_configuration_decides_alike(infer, weights, decided, tmp_path, monkeypatch):
    expected = infer(checkpoint=str(weights))
    monkeypatch.setitem(sys.modules, "torch_tensorrt", types.ModuleType("torch_tensorrt"))
    network = COPLENet(features=FEATURES, norm="group").eval()
    network.load_state_dict(torch.load(weights, weights_only=True))
    torch.jit.script(network).save(str(tmp_path / "engine.ts"))
    found = infer(("inference", "inference_trt"), trt_file=str(tmp_path / "engine.ts"), checkpoint=str(weights))
    assert (found != expected).mean() < 1e-3


def test_one_of_other_weights_is_left_aside(infer, weights, tmp_path, caplog):
    ClassOffsets([0.0, 50.0], NAMES, {"weights": "sha256:0"}).to_json(weights.parent / "decision.json")
    try:
        with caplog.at_level(logging.WARNING):
            assert not infer(checkpoint=str(weights)).all()
        assert "was fitted for other weights than" in caplog.text
    finally:
        (weights.parent / "decision.json").unlink()


def test_what_is_refused_ends_with_one_line(command, flags, weights, tmp_path):
    ClassOffsets([0, 1, 2]).to_json(tmp_path / "three.json")
    given = {**{key: flags[key] for key in ("dataset_dir", "features", "device")}, "checkpoint": weights}
    for decision, message in (
        ("three.json", "ValueError: three.json: found offsets of 3 classes, expected ['background', 'lesion']"),
        ("none.json", "FileNotFoundError: none.json: no such file, expected a JSON file of class offsets"),
    ):
        run = command(tmp_path, ("inference",), expect=1, **given, decision=decision)
        assert run.output.splitlines()[-1] == f"error: {message}"
        assert not (tmp_path / "eval").exists()
