"""Scans whose names no text file can take, and results that lie among the scans."""

from __future__ import annotations

import csv
import os

import nibabel
import numpy as np
import pytest
import torch

from monai_margincal.errors import root_message
from monai_margincal.networks import COPLENet


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    (folder / "images").mkdir(parents=True)
    scan = np.random.RandomState(0).randint(-1024, 200, (32, 32, 2)).astype(np.int16)
    nibabel.save(nibabel.Nifti1Image(scan, np.eye(4)), folder / "images" / "ok.nii.gz")
    torch.manual_seed(0)
    torch.save(COPLENet(features=(8, 16, 32, 64, 128), norm="group").state_dict(), tmp_path / "w.pt")
    return folder


def flags(data, **overrides):
    return {"dataset_dir": str(data), "checkpoint": str(data.parent / "w.pt"), "lung_crop": False, **overrides}


def rows(folder):
    with (folder / "volumes.csv").open(newline="", encoding="utf-8") as file:
        return {row["image"].rsplit("/", 1)[-1]: row for row in csv.DictReader(file)}


def odd_name(data, content=None):
    """A scan with a name in another encoding, as out of an old archive."""
    path = os.path.join(os.fsencode(data), b"images", b"L\xe4sion.nii.gz")  # noqa: PTH118
    with open(path, "wb") as file:  # noqa: PTH123
        file.write((data / "images" / "ok.nii.gz").read_bytes() if content is None else content)
    return "L\\xe4sion.nii.gz"


def test_a_name_that_is_no_utf8_is_a_scan_as_others_are(workflow, data, tmp_path):
    shown = odd_name(data)
    workflow(("inference",), "infer", **flags(data, outputs="mask,volumes,overlay")).run()
    found = rows(tmp_path / "eval")
    assert set(found) == {shown, "ok.nii.gz"}
    assert found[shown]["lesion_voxels"] == found["ok.nii.gz"]["lesion_voxels"]
    written = sorted(os.listdir(os.fsencode(tmp_path / "eval" / "images")))  # noqa: PTH208
    assert written == [
        b"L\xe4sion_mask.nii.gz",
        b"L\xe4sion_overlay.png",
        b"ok_mask.nii.gz",
        b"ok_overlay.png",
    ]


def test_a_name_that_is_no_utf8_can_fail_and_be_named(workflow, data, tmp_path):
    shown = odd_name(data, b"no scan")
    with pytest.raises(RuntimeError) as raised:
        workflow(("inference",), "infer", **flags(data)).run()
    assert root_message(raised.value).startswith(f"1 of 2 scans failed: {data}/images/{shown}: cannot be read")
    found = rows(tmp_path / "eval")
    assert found["ok.nii.gz"]["error"] == ""
    assert f"/images/{shown}: cannot be read" in found[shown]["error"]


def test_a_mask_of_this_run_stays_when_the_dicom_seg_fails(workflow, data, tmp_path):
    """The scan is no DICOM series: its mask is saved, its SEG cannot be."""
    pytest.importorskip("highdicom")
    weights = torch.load(data.parent / "w.pt", weights_only=True)
    weights["out_conv.bias"] += torch.tensor([-1e3, 1e3])
    torch.save(weights, data.parent / "w.pt")
    for _ in range(2):
        with pytest.raises(RuntimeError) as raised:
            workflow(("inference",), "infer", **flags(data, outputs="mask,dicom_seg,volumes")).run()
        assert f"{data}/images/ok.nii.gz: a DICOM SEG refers to a DICOM series" in root_message(raised.value)
        written = {path.name for path in (tmp_path / "eval").rglob("*") if path.is_file()}
        assert written == {"ok_mask.nii.gz", "volumes.csv"}
        assert "a DICOM SEG refers to" in rows(tmp_path / "eval")["ok.nii.gz"]["error"]


@pytest.mark.parametrize("below", ["", "images"])
def test_the_second_run_does_not_segment_the_masks_of_the_first(workflow, data, below):
    """The folder of results is that of the data, or the pattern reaches into it."""
    root, pattern = (data, "images/{case}.*") if not below else (data / below, "{case}.*")
    own = {**flags(data), "dataset_dir": str(root), "output_dir": str(root), "image_pattern": pattern}
    for _ in range(2):
        workflow(("inference",), "infer", **own).run()
        assert sorted(path.name for path in (data / "images").glob("*.nii.gz")) == ["ok.nii.gz", "ok_mask.nii.gz"]
        assert list(rows(root)) == ["ok.nii.gz"]
    with pytest.raises(RuntimeError) as raised:
        workflow(("inference",), "infer", **{**own, "cases": "ok_mask"}).run()
    assert "ok_mask.nii.gz: found results of an earlier run only, expected scans" in root_message(raised.value)
