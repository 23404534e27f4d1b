"""Where a box lies in a cube, and how far outlines agree there, on images whose place and outlines are known."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import nibabel
import numpy as np
import pytest
from scipy import ndimage

_spec = importlib.util.spec_from_file_location("nodule_readers", Path(__file__).with_name("nodule_readers.py"))
readers = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(readers)

SPACING = np.array([0.7, 0.7, 2.5])
#: where the middle of the box lies in the cube, in mm
PLACE = np.array([24.3, 26.6, 25.2])
SHAPE = np.array([40, 40, 9])


@pytest.fixture(scope="module")
def lung():
    """A smooth image of 51 mm at 1 mm, and what a scanner of another spacing sees of it."""
    noise = np.random.default_rng(3).normal(size=(51, 51, 51))
    cube = -700 + 400 * ndimage.gaussian_filter(noise, 2) / 0.05
    return np.clip(cube, *readers.WINDOW)


def in_box(cube):
    """The box's samples of an image that is given on the cube's grid."""
    grid = (np.indices(SHAPE).reshape(3, -1).T - (SHAPE - 1) / 2) * SPACING + PLACE
    return ndimage.map_coordinates(cube, grid.T, order=1).reshape(SHAPE)


def ball(radius, middle=PLACE):
    """A ball on the cube's grid, with a rim of one voxel in which it fades."""
    distance = np.linalg.norm(np.indices((51, 51, 51)).T - middle, axis=-1).T
    return np.clip(radius + 0.5 - distance, 0, 1)


def test_a_box_is_found_to_a_fraction_of_a_voxel(lung):
    truth = in_box(ball(5)) > 0.5
    found = readers.match(lung, in_box(lung), truth, SPACING)
    voxel_in_cube = (found.voxel - (SHAPE - 1) / 2) * SPACING + PLACE
    assert found.correlation > 0.95
    assert found.at == pytest.approx(voxel_in_cube, abs=0.25)


def test_a_mask_of_the_box_comes_to_lie_where_it_was_in_the_cube(lung):
    truth = in_box(ball(6)) > 0.5
    found = readers.match(lung, in_box(lung), truth, SPACING)
    both, either = readers.iou(found.on_the_cube(truth, lung.shape), ball(6) > 0.5)
    assert both / either > 0.85


def test_correlation_is_that_of_numpy(lung):
    part = lung[10:20, 5:18, 30:37]
    found = readers.correlations(lung, part)
    assert found[10, 5, 30] == pytest.approx(1)
    expected = np.corrcoef(lung[3:13, 7:20, 8:15].ravel(), part.ravel())[0, 1]
    assert found[3, 7, 8] == pytest.approx(expected, abs=1e-6)


def save(path, voxels, spacing):
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(voxels, np.diag([*spacing, 1.0])), path)


def test_the_table_has_the_three_pairs_and_leaves_out_what_does_not_correlate(lung, tmp_path, capsys):
    """The reader outlines a larger ball than the consensus, the mask is the consensus; one cube is of another place."""
    boxes, cubes, masks = (tmp_path / name for name in ("boxes", "cubes", "masks"))
    truth = (in_box(ball(5)) > 0.5).astype(np.uint8)
    save(boxes / "images" / "a.nii.gz", in_box(lung).astype(np.float32), SPACING)
    save(boxes / "labels" / "a.nii.gz", truth, SPACING)
    save(masks / "images" / "a_mask.nii.gz", truth, SPACING)
    for case, image in (("near", lung), ("again", lung), ("elsewhere", lung[::-1, ::-1].copy())):
        save(cubes / "images" / f"{case}.nii.gz", image.astype(np.float32), (1, 1, 1))
        save(cubes / "labels" / f"{case}.nii.gz", (ball(6) > 0.5).astype(np.uint8), (1, 1, 1))
    (boxes / "cases.csv").write_text("case,patient_id\na,p\n")
    (cubes / "cases.csv").write_text("case,patient_id\nnear,p\nagain,p\nelsewhere,p\n")
    readers.main(boxes, cubes, masks)
    rows = {
        cells[1].strip(): cells[2:] for cells in (line.split("|") for line in capsys.readouterr().out.splitlines()[2:])
    }
    assert {name: int(cells[0]) for name, cells in rows.items()} == {
        "one reader, consensus": 2,
        "mask, consensus": 2,
        "mask, one reader": 2,
    }
    assert float(rows["mask, consensus"][1]) == 1
    # balls of 5 and 6 mm
    assert float(rows["one reader, consensus"][1]) == pytest.approx((5 / 6) ** 3, abs=0.08)
    assert rows["mask, one reader"][1] == rows["one reader, consensus"][1]
