"""The overlay picture: right slice, right side, right grid."""

from __future__ import annotations

import nibabel
import numpy as np
import pytest
from matplotlib.image import imread

from monai_margincal.outputs.segmentation_view import SegmentationView, load_view, save_overlay
from monai_margincal.samples import sample_dir


def save(path, array, affine):
    nibabel.save(nibabel.Nifti1Image(array, affine), path)
    return path


@pytest.mark.parametrize("codes", ["RAS", "LPS", "LAS", "ASL"])
def test_any_orientation_is_turned_to_lps(tmp_path, codes):
    """The same anatomy stored in another order must give the same picture."""
    lps = np.arange(4 * 5 * 6, dtype=np.int16).reshape(4, 5, 6)
    affine = np.diag([-2.0, -3.0, 4.0, 1.0])
    reference = nibabel.Nifti1Image(lps, affine)
    turn = nibabel.orientations.ornt_transform(
        nibabel.orientations.axcodes2ornt("LPS"), nibabel.orientations.axcodes2ornt(codes)
    )
    stored = tmp_path / "image.nii.gz"
    nibabel.save(reference.as_reoriented(turn), stored)
    view = load_view("x", stored, stored, stored)
    np.testing.assert_array_equal(view.image, lps)
    assert view.spacing == (2.0, 3.0, 4.0)


def test_a_mask_of_another_grid_is_refused(tmp_path):
    image = save(tmp_path / "image.nii.gz", np.zeros((4, 4, 4), np.int16), np.eye(4))
    moved = save(tmp_path / "moved.nii.gz", np.zeros((4, 4, 4), np.uint8), np.diag([2.0, 1, 1, 1]))
    with pytest.raises(ValueError, match=r"moved\.nii\.gz: found shape"):
        load_view("x", image, moved, image)


def test_the_slice_with_most_foreground_is_shown():
    empty = np.zeros((3, 3, 5), np.uint8)
    truth = empty.copy()
    truth[0, 0, 1] = truth[:2, 0, 3] = 1
    assert SegmentationView("x", empty, truth, empty, (1, 1, 1)).best_slice == 3
    assert SegmentationView("x", empty, empty, truth, (1, 1, 1)).best_slice == 3
    assert SegmentationView("x", empty, empty, empty, (1, 1, 1)).best_slice == 2


def test_picture_of_the_sample(tmp_path):
    folder = sample_dir("lung_ct")
    label = f"{folder}/labels/lung2.nii.gz"
    view = load_view("lung2", f"{folder}/images/lung2.nii.gz", label, label, "lesion IoU 1.00")
    save_overlay([view, view], tmp_path / "overlay.png", ["background", "lesion"], window=(-1400.0, 100.0))
    picture = imread(tmp_path / "overlay.png")
    assert picture.shape[0] > 600
    # the orange of the lesion is in it, twice per row
    orange = (picture[..., 0] > picture[..., 2] + 0.3).mean()
    assert 0.02 < orange < 0.2
    assert [p.name for p in tmp_path.iterdir()] == ["overlay.png"]


def test_nothing_to_draw(tmp_path):
    with pytest.raises(ValueError, match="found no volume"):
        save_overlay([], tmp_path / "overlay.png", ["background", "lesion"], window=(0.0, 1.0))
    with pytest.raises(ValueError, match="x: found the shapes"):
        SegmentationView("x", np.zeros((2, 2, 2)), np.zeros((2, 2, 3)), np.zeros((2, 2, 2)), (1, 1, 1))


def test_one_column_each_is_wide(tmp_path):
    empty = np.zeros((40, 40, 2), np.uint8)
    views = [SegmentationView("x", empty, empty, empty, (1, 1, 1))] * 5
    for one_column_each, name in ((False, "high.png"), (True, "wide.png")):
        save_overlay(views, tmp_path / name, ["a", "b"], window=(0.0, 1.0), one_column_each=one_column_each)
    high, wide = (imread(tmp_path / name).shape[:2] for name in ("high.png", "wide.png"))
    assert high[0] > high[1]
    assert wide[0] < wide[1]
