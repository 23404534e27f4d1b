"""The mask as other programs read it: classes, type, shape and place are those that went in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk
import torch
from monai.data import MetaTensor

from monai_margincal.outputs import Outputs, SaveImageOutputsd

#: oblique, with a flipped axis and three voxel sizes, in RAS
AFFINE = torch.tensor(
    [[-0.7 * 0.8, 0.9 * 0.6, 0.0, 12.5], [0.7 * 0.6, 0.9 * 0.8, 0.0, -7.0], [0.0, 0.0, 2.5, 40.0], [0, 0, 0, 1]],
    dtype=torch.float64,
)


def _mask(scan: Path, classes: int = 3) -> MetaTensor:
    values = torch.randint(0, classes, (1, 5, 6, 4), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    return MetaTensor(values, affine=AFFINE, meta={"filename_or_obj": str(scan)})


@pytest.mark.parametrize(("options", "name"), [({}, "ct_mask.nii.gz"), ({"postfix": "seg"}, "ct_seg.nii.gz")])
def test_a_second_reader_finds_what_was_saved(tmp_path: Path, options: dict[str, str], name: str) -> None:
    outputs = Outputs("mask", tmp_path / "out", data_root_dir=tmp_path, mask=options)
    mask = _mask(tmp_path / "patient" / "ct.nrrd")
    SaveImageOutputsd("pred", outputs, grid="scan")({"pred": mask, "image": mask})
    read = sitk.ReadImage(str(tmp_path / "out" / "patient" / name))
    assert read.GetPixelID() == sitk.sitkUInt8
    assert np.array_equal(sitk.GetArrayFromImage(read).transpose(2, 1, 0), mask[0].numpy())
    corner = np.array(read.TransformIndexToPhysicalPoint((4, 5, 3))) * (-1, -1, 1)  # LPS to RAS
    assert corner == pytest.approx((AFFINE.numpy() @ (4, 5, 3, 1))[:3], abs=1e-4)


def test_all_classes_up_to_255_survive(tmp_path: Path) -> None:
    outputs = Outputs("mask", tmp_path)
    mask = _mask(Path("ct.nii.gz"), classes=256)
    SaveImageOutputsd("pred", outputs, grid="scan")({"pred": mask, "image": mask})
    read = sitk.GetArrayFromImage(sitk.ReadImage(str(tmp_path / "ct_mask.nii.gz")))
    assert np.array_equal(read.transpose(2, 1, 0), mask[0].numpy())
