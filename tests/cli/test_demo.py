"""`margincal demo`, run for real: it learns, it repeats itself, it leaves other people's files alone."""

from __future__ import annotations

import json
import subprocess
import sys

import nibabel
import numpy as np
import pytest
import SimpleITK as sitk

from monai_margincal import ClassCounts, class_margins
from monai_margincal.cli import main
from monai_margincal.samples import sample_dir

pytestmark = pytest.mark.slow


def demo(output, *words):
    return subprocess.run(
        [sys.executable, "-m", "monai_margincal", "demo", "--output", str(output), *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def short_run(tmp_path_factory):
    output = tmp_path_factory.mktemp("demo") / "out"
    result = demo(output, "--steps", 3)
    assert result.returncode == 0, result.stderr
    return output, result


def test_every_product_is_there(short_run):
    output, result = short_run
    counts = ClassCounts.from_json(output / "counts.json")
    assert counts.counts.tolist() == [860092, 24644]
    assert f"{class_margins(counts).negative[1]:.3g}" in result.stdout
    assert "lung2 (training case)" in result.stdout
    assert "lung1 (held out)" in result.stdout
    assert (output / "overlay.png").stat().st_size > 50_000
    assert (output / "models" / "model.pt").is_file()


@pytest.mark.parametrize("case", ["lung1", "lung2"])
def test_masks_lie_on_the_grid_of_the_scan(short_run, case):
    (path,) = (short_run[0] / "masks").rglob(f"{case}_mask.nii.gz")
    scan = f"{sample_dir('lung_ct')}/images/{case}.nii.gz"
    image, mask = nibabel.load(scan), nibabel.load(path)
    assert mask.shape == image.shape
    assert mask.get_data_dtype() == np.uint8
    np.testing.assert_allclose(mask.affine, image.affine, atol=1e-4)
    assert set(np.unique(np.asanyarray(mask.dataobj))) <= {0, 1}
    image, mask = sitk.ReadImage(scan), sitk.ReadImage(str(path))
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
    assert demo(output, "--steps", 3).returncode == 0
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


@pytest.mark.slow
def test_it_learns_the_training_case(tmp_path):
    result = demo(tmp_path / "out")
    assert result.returncode == 0, result.stderr
    iou = json.loads((tmp_path / "out" / "margincal_demo.json").read_text())["iou"]
    assert iou["lung2"]["lesion"] >= 0.6
    assert 0 <= iou["lung1"]["lesion"] <= 1
