"""Image and label must share one grid (MONAI issues 7254, 8399; MONAILabel issue 1684)."""

from __future__ import annotations

import nibabel
import numpy as np
import pytest
import torch
from monai.data import MetaTensor
from monai.transforms import Compose, EnsureChannelFirstd, LoadImaged

from monai_margincal.datasets import folder_datalist
from monai_margincal.samples import sample_dir
from monai_margincal.transforms import CheckSameGridd

AFFINE = np.array([[0.0, -0.7, 0.1, 5], [-0.6, 0, 0, 7], [0, 0.05, 5.0, -40], [0, 0, 0, 1]])


def pair(image_affine=AFFINE, label_affine=AFFINE, image_shape=(9, 8, 4), label_shape=(9, 8, 4)):
    def item(shape, affine, name):
        return MetaTensor(torch.zeros(1, *shape), affine=torch.tensor(affine), meta={"filename_or_obj": name})

    return {
        "image": item(image_shape, image_affine, "ct.nii.gz"),
        "label": item(label_shape, label_affine, "seg.nrrd"),
        "case": "a",
    }


def test_what_fits_passes_unchanged():
    data = pair()
    checked = CheckSameGridd(["image", "label"])(data)
    assert checked == data
    assert checked is not data


def test_rounding_in_headers_is_no_fault():
    nudged = AFFINE + np.random.RandomState(0).uniform(-1e-4, 1e-4, (4, 4)) * [[1], [1], [1], [0]]
    CheckSameGridd(["image", "label"])(pair(label_affine=nudged))


def test_a_missing_slice_names_both_files():
    with pytest.raises(
        ValueError, match=r"image \(ct\.nii\.gz\) has shape \(9, 8, 4\), label \(seg\.nrrd\) has shape \(9, 8, 3\)"
    ):
        CheckSameGridd(["image", "label"])(pair(label_shape=(9, 8, 3)))


@pytest.mark.parametrize(
    "change",
    [
        np.diag([1.0, 1, 1, 1]) + np.array([[0, 0, 0, 1]] + [[0] * 4] * 3),  # one voxel along the first axis
        np.diag([-1.0, 1, 1, 1])
        + np.array([[0, 0, 0, 8]] + [[0] * 4] * 3),  # mirrored about the middle: same corners, other order
        np.diag([1.0, 1, 1.2, 1]),
    ],
    ids=["shifted", "mirrored", "other-spacing"],
)
def test_another_header_is_refused_and_can_be_allowed(change):
    data = pair(label_affine=AFFINE @ change)
    with pytest.raises(ValueError, match=r"the affine .*, label \(seg\.nrrd\) has .* voxels, allowed are 0\.25"):
        CheckSameGridd(["image", "label"])(data)
    CheckSameGridd(["image", "label"], tolerance=None)(data)


def test_nan_in_a_header_is_refused():
    broken = AFFINE.copy()
    broken[0, 0] = np.nan
    with pytest.raises(ValueError, match="nan voxels"):
        CheckSameGridd(["image", "label"])(pair(label_affine=broken))


def test_planes():
    plane = {key: MetaTensor(torch.zeros(3, 9, 8), affine=torch.eye(4)) for key in ("image", "label")}
    CheckSameGridd(["image", "label"])(plane)
    plane["label"].affine = torch.diag(torch.tensor([2.0, 2, 1, 1]))
    with pytest.raises(ValueError, match=r"moves by 10\.63 mm or 10\.63 voxels"):
        CheckSameGridd(["image", "label"])(plane)


def test_arguments():
    with pytest.raises(ValueError, match="tolerance must not be negative, found -1"):
        CheckSameGridd(["image"], tolerance=-1)
    with pytest.raises(KeyError, match="label"):
        CheckSameGridd(["image", "label"])({"image": torch.zeros(1, 2, 2)})
    CheckSameGridd(["image", "label"], allow_missing_keys=True)({"image": torch.zeros(1, 2, 2)})


def test_real_files(tmp_path):
    load = Compose([LoadImaged(["image", "label"]), EnsureChannelFirstd(["image", "label"])])
    check = CheckSameGridd(["image", "label"])
    (first, second) = folder_datalist(sample_dir("lung_ct"))
    check(load(first))
    with pytest.raises(ValueError, match=r"lung1\.nii\.gz\) has the affine .*labels/lung2\.nii\.gz"):
        check(load({"image": first["image"], "label": second["label"]}))
    label = nibabel.load(first["label"])
    nibabel.save(label.slicer[..., 1:], tmp_path / "short.nii.gz")
    with pytest.raises(ValueError, match=r"\(192, 192, 24\), .*short\.nii\.gz\) has shape \(192, 192, 23\)"):
        check(load({"image": first["image"], "label": str(tmp_path / "short.nii.gz")}))
