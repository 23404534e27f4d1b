"""A DICOM scan of one slice is as thick as its header says."""

from __future__ import annotations

import warnings

import numpy as np
import pydicom
import pytest
from dicom_files import write_multiframe, write_series
from monai.transforms import LoadImage, LoadImaged

from monai_margincal.datasets import ScanDataset

READERS = ["monai_margincal.transforms.DicomReader", "monai_margincal.transforms.NiftiReader"]
VOXELS = np.random.RandomState(0).randint(-1000, 500, (8, 6, 5)).astype(np.int16)


@pytest.mark.parametrize("kind", ["folder", "file", "enhanced"])
def test_one_slice_has_its_thickness_and_warns_of_nothing(tmp_path, kind):
    if kind == "enhanced":
        path, thickness = write_multiframe(tmp_path / "a.dcm", VOXELS[..., :1], [[-10.0, 20.0, 30.0]]), 2.5
    else:
        path, thickness = write_series(tmp_path / "scan", VOXELS[..., :1], step_mm=5.0), 5.0
        path = path if kind == "folder" else next(path.iterdir())
    scans = ScanDataset([{"image": str(path)}], LoadImaged("image", READERS, ensure_channel_first=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        image = scans[0]["image"]
    assert np.asarray(image.affine).diagonal().tolist() == pytest.approx([-0.9, -0.7, thickness, 1])
    assert np.array_equal(np.asarray(image[0, ..., 0]), VOXELS[..., 0].T)


def test_one_slice_without_a_thickness_is_said(tmp_path):
    def change(image: pydicom.Dataset, k: int) -> None:
        del image.SliceThickness

    path = write_series(tmp_path / "scan", VOXELS[..., :1], change=change)
    scans = ScanDataset([{"image": str(path)}], LoadImaged("image", READERS, ensure_channel_first=True))
    with pytest.warns(UserWarning, match=rf"^{path}: found one slice of unknown thickness"):
        assert np.linalg.norm(np.asarray(scans[0]["image"].affine)[:3, 2]) == 1


def test_several_slices_are_read_as_itk_reads_them(tmp_path):
    path = write_series(tmp_path / "scan", VOXELS, SliceThickness=7.0)
    ours, itk = LoadImage(READERS)(path), LoadImage("ITKReader")(path)
    assert np.array_equal(np.asarray(ours), np.asarray(itk))
    assert np.array_equal(np.asarray(ours.affine), np.asarray(itk.affine))


def test_other_files_are_left_to_other_readers(tmp_path):
    import SimpleITK as sitk

    path = tmp_path / "a.nrrd"
    image = sitk.GetImageFromArray(VOXELS)
    image.SetSpacing((1.0, 2.0, 3.0))
    sitk.WriteImage(image, str(path))
    assert np.abs(np.asarray(LoadImage(READERS)(path).affine)).diagonal().tolist() == [1, 2, 3, 1]
