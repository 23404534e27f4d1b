"""What the report says of a data set's geometry holds for the axes that a chain sees, however the files store them."""

from __future__ import annotations

import itertools

import nibabel
import numpy as np
import pytest
from monai.transforms import Compose, EnsureChannelFirst, LoadImage, Orientation

from monai_margincal.statistics import find_problems, scan_labels
from monai_margincal.statistics.report import report_data

SIZES, SPACING = (12, 10, 7), (0.8, 0.7, 3.0)


def stored(axes, signs):
    """One grid of right, anterior, superior, stored with these axes and directions."""
    label = np.zeros(SIZES, np.uint8)
    label[2:5, 3:6, 1:4] = 1
    affine = np.zeros((4, 4))
    affine[3, 3] = 1
    for place, (axis, sign) in enumerate(zip(axes, signs, strict=True)):
        affine[axis, place] = sign * SPACING[axis]
    return label.transpose(axes), affine


WAYS = list(itertools.product(itertools.permutations(range(3)), itertools.product((1, -1), repeat=3)))


@pytest.mark.parametrize("turn", [0.0, 0.3])
def test_however_the_axes_are_stored(turn, tmp_path):
    c, s = np.cos(turn), np.sin(turn)
    oblique = np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    for number, way in enumerate(WAYS):
        label, affine = stored(*way)
        nibabel.save(nibabel.Nifti1Image(label, oblique @ affine), tmp_path / f"{number:02d}.nii.gz")
        scan = scan_labels(str(tmp_path / f"{number:02d}.nii.gz"), num_classes=2, progress=False)
        geometry = report_data(scan)["geometry"]
        np.testing.assert_allclose(geometry["median_spacing"], SPACING, rtol=1e-5)
        assert geometry["median_shape"] == list(SIZES)
        chain = Compose(
            [LoadImage(), EnsureChannelFirst(), Orientation("RAS", labels=[["L", "R"], ["P", "A"], ["I", "S"]])]
        )
        seen = chain(tmp_path / f"{number:02d}.nii.gz")
        assert list(seen.shape[1:]) == list(SIZES)
        np.testing.assert_allclose(seen.pixdim, geometry["median_spacing"], rtol=1e-5)
    scan = scan_labels(str(tmp_path / "*.nii.gz"), num_classes=2, progress=False)
    assert report_data(scan)["geometry"]["median_shape"] == list(SIZES)
    assert len(report_data(scan)["geometry"]["orientations"]) == len(WAYS)
    assert [finding.kind for finding in find_problems(scan)].count("mixed orientations") == 1


def test_the_fewer_are_named(tmp_path):
    for number, way in enumerate([((0, 1, 2), (1, 1, 1))] * 3 + [((2, 1, 0), (-1, -1, -1))]):
        label, affine = stored(*way)
        label = label.copy()
        label.reshape(-1)[number] = 1  # no copies
        nibabel.save(nibabel.Nifti1Image(label, affine), tmp_path / f"{number}.nii.gz")
    scan = scan_labels(str(tmp_path / "*.nii.gz"), num_classes=2, progress=False)
    (finding,) = [finding for finding in find_problems(scan) if finding.kind == "mixed orientations"]
    assert "(IPL in 1, RAS in 3)" in finding.message
    assert finding.files == (str(tmp_path / "3.nii.gz"),)


def test_one_orientation_is_no_finding(tmp_path):
    for number in range(2):
        label, affine = stored((0, 1, 2), (-1, -1, 1))
        nibabel.save(nibabel.Nifti1Image(label, affine), tmp_path / f"{number}.nii.gz")
    scan = scan_labels(str(tmp_path / "*.nii.gz"), num_classes=2, progress=False)
    assert "mixed orientations" not in {finding.kind for finding in find_problems(scan)}


def test_arrays_stay_as_they_are():
    scan = scan_labels([{"label": np.zeros((1, 4, 5, 6), np.uint8)}], num_classes=2, progress=False)
    assert report_data(scan)["geometry"]["median_spacing"] is None
    assert report_data(scan)["geometry"]["orientations"] == {}
