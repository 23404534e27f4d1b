"""`margincal demo`, run for real: it learns, it repeats itself, it leaves other people's files alone."""

from __future__ import annotations

import json
import subprocess
import sys

import nibabel
import numpy as np
import pytest
import SimpleITK as sitk

from monai_margincal import ClassCounts, ClassOffsets, class_margins
from monai_margincal.cli import main
from monai_margincal.cli.demo.patients import demo_patients

pytestmark = pytest.mark.slow

HELD_OUT = demo_patients()["held_out"]


def demo(output, *words):
    return subprocess.run(
        [sys.executable, "-m", "monai_margincal", "demo", "--output", str(output), *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )


def iou_of(prediction, truth):
    return (prediction & truth).sum() / (prediction | truth).sum()


@pytest.fixture(scope="module")
def short_run(tmp_path_factory):
    output = tmp_path_factory.mktemp("demo") / "out"
    result = demo(output, "--steps", 1)
    assert result.returncode == 0, result.stderr
    return output, result


def test_no_patient_is_in_two_parts():
    names = [patient.name for part in demo_patients().values() for patient in part]
    assert len(set(names)) == len(names) == 190


def test_every_product_is_there(short_run):
    output, result = short_run
    counts = ClassCounts.from_json(output / "counts.json")
    truth = [np.asanyarray(nibabel.load(patient.label).dataobj) for patient in demo_patients()["training"]]
    assert counts.counts.tolist() == [sum(int((label == k).sum()) for label in truth) for k in (0, 1)]
    assert f"{class_margins(counts).negative[1]:.3g}" in result.stdout
    assert "for 1 epochs of 32 steps" in result.stdout
    assert ClassOffsets.from_json(output / "models" / "decision.json").fitted_on["cases"] == 22
    assert (output / "overlay.png").stat().st_size > 50_000
    assert (output / "models" / "model.pt").is_file()


def test_the_numbers_are_those_of_the_saved_masks(short_run):
    output, result = short_run
    told = json.loads((output / "margincal_demo.json").read_text())["iou"]
    masks = {path.name.removesuffix("_mask.nii.gz"): path for path in (output / "masks").rglob("*_mask.nii.gz")}
    assert set(masks) == set(told["cases"]) == {patient.case for patient in HELD_OUT}
    pairs = [
        [np.asanyarray(nibabel.load(path).dataobj).ravel() == 1 for path in (masks[patient.case], patient.label)]
        for patient in HELD_OUT
    ]
    each = {patient.case: iou_of(*pair) for patient, pair in zip(HELD_OUT, pairs, strict=True)}
    assert told["cases"] == pytest.approx(each)
    assert told["mean"][0] == pytest.approx(np.mean(list(each.values())))
    assert told["pooled"][0] == pytest.approx(iou_of(*(np.concatenate(part) for part in zip(*pairs, strict=True))))
    for value, low, high in (told["pooled"], told["mean"]):
        assert low < value < high
        assert f"{value:.3f}" in result.stdout


def test_masks_lie_on_the_grid_of_the_scan(short_run):
    patient = HELD_OUT[0]
    (path,) = (short_run[0] / "masks").rglob(f"{patient.case}_mask.nii.gz")
    image, mask = nibabel.load(patient.image), nibabel.load(path)
    assert mask.shape == image.shape
    assert mask.get_data_dtype() == np.uint8
    np.testing.assert_allclose(mask.affine, image.affine, atol=1e-4)
    assert set(np.unique(np.asanyarray(mask.dataobj))) <= {0, 1}
    image, mask = sitk.ReadImage(patient.image), sitk.ReadImage(str(path))
    for property_ in ("GetSize", "GetSpacing", "GetOrigin", "GetDirection"):
        np.testing.assert_allclose(getattr(mask, property_)(), getattr(image, property_)(), atol=1e-4)


def test_output_in_a_pipe_has_no_bars(short_run):
    _, result = short_run
    assert "\r" not in result.stdout + result.stderr
    assert "it/s" not in result.stderr
    assert result.stderr == ""


def test_a_second_run_in_the_same_folder_gives_the_same(short_run):
    output, _ = short_run
    before = json.loads((output / "margincal_demo.json").read_text())
    assert demo(output, "--steps", 32).returncode == 0
    assert json.loads((output / "margincal_demo.json").read_text()) == before


def test_files_of_others_are_left_alone(tmp_path, capsys):
    (tmp_path / "thesis.tex").write_text("mine")
    assert main(["demo", "--output", str(tmp_path)]) == 1
    assert "holds other files" in capsys.readouterr().err
    assert main(["demo", "--output", str(tmp_path / "thesis.tex")]) == 1
    assert "is a file" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_steps_must_be_positive(tmp_path, capsys):
    assert main(["demo", "--output", str(tmp_path / "out"), "--steps", "0"]) == 1
    assert "--steps must be at least 1, found 0" in capsys.readouterr().err


@pytest.mark.timeout(1800)
def test_it_segments_patients_it_has_never_seen(tmp_path):
    result = demo(tmp_path / "out")
    assert result.returncode == 0, result.stderr
    iou = json.loads((tmp_path / "out" / "margincal_demo.json").read_text())["iou"]
    assert iou["pooled"][0] >= 0.68
    assert iou["mean"][0] >= 0.65
