"""The outputs in a chain of transforms: each at its grid, and left out by programs that save by themselves."""

from __future__ import annotations

import nibabel
import numpy as np
import pytest
import torch
from monai.data import MetaTensor
from monai.transforms import AsDiscreted, Compose, CropForegroundd, Invertd, LoadImaged, SaveImaged

from monai_margincal.outputs import MapsFromLogitsd, Outputs, SaveImageOutputsd

AFFINE = np.diag([0.5, 2.0, 3.0, 1.0])


@pytest.fixture
def prepared(tmp_path):
    """A scan cropped to its bright middle, logits on that grid, and the transform that cropped it."""
    array = np.zeros((20, 20, 8), np.float32)
    array[4:14, 6:16, 2:6] = np.random.RandomState(0).uniform(0.1, 1, (10, 10, 4))
    nibabel.save(nibabel.Nifti1Image(array, AFFINE), tmp_path / "ct.nii.gz")
    chain = Compose(
        [LoadImaged("image", ensure_channel_first=True), CropForegroundd("image", "image", allow_smaller=False)]
    )
    items = chain({"image": str(tmp_path / "ct.nii.gz")})
    image = items["image"]
    assert image.shape == (1, 10, 10, 4)
    logits = torch.cat([0.5 - image.as_tensor(), image.as_tensor() - 0.5])
    items["pred"] = MetaTensor(logits).copy_meta_from(image)
    return items, chain, array


def postprocessing(outputs, chain, keys=("pred", "probability")):
    return Compose(
        [
            MapsFromLogitsd("pred", outputs),
            AsDiscreted("pred", argmax=True, dtype=torch.uint8),
            SaveImageOutputsd("pred", outputs, grid="network"),
            Invertd(list(keys), chain, "image", nearest_interp=True, allow_missing_keys=True),
            SaveImageOutputsd("pred", outputs, grid="scan"),
        ]
    )


def test_every_output_lies_where_it_belongs(prepared, tmp_path):
    items, chain, array = prepared
    outputs = Outputs("overlay,mask,probability,volumes", tmp_path / "out")
    items = postprocessing(outputs, chain)(items)
    names = ["ct_mask.nii.gz", "ct_overlay.png", "ct_probability.nii.gz", "volumes.csv"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    mask, probability = (nibabel.load(tmp_path / "out" / f"ct_{kind}.nii.gz") for kind in ("mask", "probability"))
    assert (mask.get_data_dtype(), probability.get_data_dtype()) == (np.uint8, np.float32)
    for saved in (mask, probability):
        assert saved.shape == array.shape
        assert np.abs(saved.affine - AFFINE).max() < 1e-5
    assert np.array_equal(np.asarray(mask.dataobj), array > 0.5)
    assert np.array_equal(np.asarray(probability.dataobj) > 0.5, array > 0.5)
    assert items["pred"].shape == (1, *array.shape)


def test_a_map_that_was_not_inverted_is_not_saved_as_if_it_were(prepared, tmp_path):
    items, chain, _ = prepared
    outputs = Outputs("probability", tmp_path / "out")
    with pytest.raises(RuntimeError) as raised:
        postprocessing(outputs, chain, keys=["pred"])(items)
    assert "is 'probability' among the keys of Invertd?" in str(raised.value.__cause__)
    assert not (tmp_path / "out").exists()


def test_programs_that_save_by_themselves_leave_it_out():
    """MONAI Label drops what is a `SaveImaged`, MONAI Deploy what has "SaveImage" in its name; neither drops the rest."""
    outputs = Outputs("mask", "out")
    save, maps = SaveImageOutputsd("pred", outputs), MapsFromLogitsd("pred", outputs)
    assert isinstance(save, SaveImaged)
    assert "SaveImage" in type(save).__name__
    assert not isinstance(maps, SaveImaged)
    assert "SaveImage" not in type(maps).__name__


def test_keys_and_grids():
    outputs = Outputs("mask", "out")
    with pytest.raises(ValueError, match="grid: found 'scans', expected 'network' or 'scan'"):
        SaveImageOutputsd("pred", outputs, grid="scans")
    for transform in (SaveImageOutputsd, MapsFromLogitsd):
        with pytest.raises(KeyError, match="pred"):
            transform("pred", outputs)({})
        assert transform("pred", outputs, allow_missing_keys=True)({"a": 1}) == {"a": 1}
