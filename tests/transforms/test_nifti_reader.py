"""MONAI's chain sees a NIfTI scan where the standard puts it, and the mask goes back to that place."""

from __future__ import annotations

import itk
import nibabel
import numpy as np
import pytest
import SimpleITK
import torch
from monai.data import DataLoader, Dataset, decollate_batch
from monai.transforms import Compose, EnsureChannelFirstd, Invertd, LoadImage, LoadImaged, Orientationd
from nifti_files import GEOMETRIES, SHAPE, save_nifti

from monai_margincal.outputs import Outputs, SaveImageOutputsd
from monai_margincal.statistics import scan_labels

READER = "monai_margincal.transforms.NiftiReader"
LAST = tuple(size - 1 for size in SHAPE)


@pytest.mark.parametrize("name", GEOMETRIES)
def test_reading_and_counting_agree(name, tmp_path):
    expected = save_nifti(tmp_path / "a.nii.gz", name, voxels=np.ones(SHAPE, np.uint8))
    image = LoadImage(reader=READER)(tmp_path / "a.nii.gz")
    np.testing.assert_allclose(image.affine, expected, atol=1e-3)
    (case,) = scan_labels(str(tmp_path / "a.nii.gz"), num_classes=2, progress=False).cases
    np.testing.assert_allclose(case.affine, image.affine, atol=1e-9)
    assert case.voxel_volume == pytest.approx(abs(np.linalg.det(expected[:3, :3])), rel=1e-3)


@pytest.mark.parametrize("name", GEOMETRIES)
def test_every_reader_puts_scan_and_mask_in_one_place(name, tmp_path):
    """Through the steps of an inference, batched as by a loader, for nibabel, ITK and SimpleITK."""
    scan = tmp_path / "in" / "a.nii.gz"
    expected = save_nifti(scan, name)
    prepare = Compose(
        [
            LoadImaged("image", reader=READER),
            EnsureChannelFirstd("image"),
            Orientationd("image", "PLS", labels=[["L", "R"], ["P", "A"], ["I", "S"]]),
        ]
    )
    (batch,) = DataLoader(Dataset([{"image": str(scan)}], prepare), batch_size=1)
    batch["pred"] = (batch["image"] > 100).to(torch.uint8)
    finish = Compose(
        [
            Invertd("pred", prepare, orig_keys="image", nearest_interp=True),
            SaveImageOutputsd("pred", Outputs(["mask", "volumes"], tmp_path / "out", class_names=["none", "some"])),
        ]
    )
    for item in decollate_batch(batch):
        finish(item)
    mask = tmp_path / "out" / "a_mask.nii.gz"
    np.testing.assert_array_equal(
        np.asanyarray(nibabel.load(mask).dataobj), np.asanyarray(nibabel.load(scan).dataobj) > 100
    )
    headers = [nibabel.load(path).header for path in (scan, mask)]
    for field in ("sform_code", "qform_code", "xyzt_units"):
        assert headers[0][field] == headers[1][field], field
    np.testing.assert_array_equal(nibabel.load(mask).affine, nibabel.load(scan).affine)
    for read in (SimpleITK.ReadImage, itk.imread):
        if name == "sform alone, tilted":  # ITK knows no sheared axes and refuses both
            with pytest.raises(RuntimeError):
                read(str(mask))
            continue
        points = [np.array(read(str(path)).TransformIndexToPhysicalPoint(LAST)) for path in (scan, mask)]
        np.testing.assert_allclose(points[0], points[1], atol=1e-6)
    volume = (tmp_path / "out" / "volumes.csv").read_text().splitlines()[1].split(",")[1]
    assert float(volume) == pytest.approx(abs(np.linalg.det(expected[:3, :3])), rel=1e-3)


def test_other_formats_keep_their_readers(tmp_path):
    image = SimpleITK.GetImageFromArray(np.ones((4, 5, 6), np.int16))
    image.SetOrigin((1, 2, 3))
    SimpleITK.WriteImage(image, str(tmp_path / "a.nrrd"))
    loaded = LoadImage(reader=READER)(tmp_path / "a.nrrd")
    assert loaded.shape == (6, 5, 4)
    assert loaded.affine[:3, 3].tolist() == [-1, -2, 3]
