"""Nodules found and pieces marked elsewhere, against scans drawn by hand."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import nibabel
import numpy as np
import pytest

_spec = importlib.util.spec_from_file_location("nodule_scans", Path(__file__).with_name("nodule_scans.py"))
nodule_scans = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(nodule_scans)


def scan(*boxes):
    """20 x 20 x 20 voxels, with boxes of a corner and a side."""
    voxels = np.zeros((20, 20, 20), np.uint8)
    for corner, side in boxes:
        voxels[tuple(slice(start, start + side) for start in corner)] = 1
    return voxels


def save(path, voxels, spacing):
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(voxels, np.diag([*spacing, 1.0])), path)


def test_one_voxel_finds_a_nodule_and_touching_corners_are_one_piece():
    truth = scan(((2, 2, 2), 4), ((14, 14, 14), 3))
    mask = scan(((5, 5, 5), 2), ((10, 0, 0), 1), ((11, 1, 1), 1), ((0, 15, 0), 5))
    found = nodule_scans.marks(mask, truth, voxel_mm3=1.0)
    # two single voxels that meet in a corner, and a cube of 125 mm3: a ball of 6 mm has 113
    assert found == pytest.approx((2, 1, 2, 1, 0.127, 0.008))


def test_the_size_of_a_voxel_decides_what_is_large():
    mask = scan(((3, 3, 3), 2))
    volume = math.pi / 6 * nodule_scans.LARGE_MM**3 / 8
    assert nodule_scans.marks(mask, scan(), volume * 1.001).large == 1
    assert nodule_scans.marks(mask, scan(), volume * 0.999).large == 0


def test_a_piece_that_touches_a_nodule_is_no_false_positive_however_large():
    assert nodule_scans.marks(scan(((1, 1, 1), 18)), scan(((9, 9, 9), 1)), 1.0)[:4] == (1, 1, 0, 0)


def test_the_table(tmp_path, capsys):
    """Scans of other spacings and other orders of the axes in their files: what counts are voxels and mm."""
    save(tmp_path / "masks" / "a" / "a_mask.nii.gz", scan(((0, 0, 0), 2), ((10, 10, 10), 2)), (1, 1, 2.5))
    save(tmp_path / "truth" / "a_label.nii.gz", scan(((1, 1, 1), 3)), (1, 1, 2.5))
    save(tmp_path / "masks" / "b_mask.nii.gz", scan(), (0.5, 0.5, 0.5))
    save(tmp_path / "truth" / "b_label.nii.gz", scan(((4, 4, 4), 1)), (0.5, 0.5, 0.5))
    nodule_scans.main(tmp_path / "masks", tmp_path / "truth", "{case}_label.nii.gz")
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:5] == [
        "| a | 1 of 1 | 1 | 0 | 0.02 |",
        "| b | 0 of 1 | 0 | 0 | 0.00 |",
        "| all 2 | 1 of 2 | 1 | 0 | 0.02 |",
    ]
    assert lines[-1] == "0.02 l in all, 2 scans with 0.50 pieces elsewhere each"


def test_without_labels_every_piece_is_a_false_positive(tmp_path, capsys):
    save(tmp_path / "a_mask.nii.gz", scan(((0, 0, 0), 2)), (3, 3, 3))
    nodule_scans.main(tmp_path, None, "{case}.nii.gz")
    assert "| a | 0 of 0 | 1 | 1 | 0.22 |" in capsys.readouterr().out
