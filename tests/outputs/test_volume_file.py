"""Volumes on disk: shape, dtype, affine as both nibabel and SimpleITK read them, and names that do not collide."""

from __future__ import annotations

import logging
from pathlib import Path

import nibabel
import numpy as np
import pytest
import SimpleITK
import torch
from monai.data import MetaTensor
from monai.transforms import SaveImage

from monai_margincal.datasets import mask_file_name
from monai_margincal.outputs.volume_file import MaskWriter

OBLIQUE = np.array([[-0.6, 0.1, 0.3, 10], [0.2, 0.7, -0.1, -20], [-0.2, 0.1, 4.9, 30], [0, 0, 0, 1]])
# orthonormal axes, as SimpleITK demands, times the spacing
OBLIQUE[:3, :3] = np.linalg.qr(OBLIQUE[:3, :3])[0] @ np.diag([0.6, 0.7, 5.0])


def save(mask, folder, affine=OBLIQUE, image="scan.nii.gz", **options):
    path = str(Path(folder) / image)
    saver = SaveImage(
        folder,
        "mask",
        ".nii.gz",
        output_dtype="uint8",
        separate_folder=False,
        writer=MaskWriter,
        output_name_formatter=mask_file_name,
        **options,
    )
    saver(MetaTensor(mask, affine=torch.as_tensor(affine), meta={"filename_or_obj": path}))


@pytest.mark.parametrize("shape", [(5, 6, 7), (5, 6, 1), (1, 6, 1), (1, 1, 1), (1, 6, 7)])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.int64])
def test_the_mask_has_the_grid_of_the_scan(tmp_path, shape, dtype):
    mask = torch.randint(0, 3, (1, *shape), generator=torch.Generator().manual_seed(0)).to(dtype)
    save(mask, tmp_path, print_log=False)
    (path,) = tmp_path.iterdir()
    assert path.name == "scan_mask.nii.gz"
    saved = nibabel.load(path)
    assert saved.shape == shape
    assert saved.get_data_dtype() == np.uint8
    assert np.abs(saved.affine - OBLIQUE).max() < 1e-4
    assert np.array_equal(np.asarray(saved.dataobj), mask[0].numpy())
    other = SimpleITK.ReadImage(str(path))
    assert other.GetSize() == shape
    assert other.GetPixelID() == SimpleITK.sitkUInt8
    flip = np.diag([-1, -1, 1])  # SimpleITK speaks LPS
    directions = np.array(other.GetDirection()).reshape(3, 3) @ np.diag(other.GetSpacing())
    assert np.abs(flip @ directions - OBLIQUE[:3, :3]).max() < 1e-4
    assert np.abs(flip @ other.GetOrigin() - OBLIQUE[:3, 3]).max() < 1e-4


def test_several_channels_stay(tmp_path):
    save(torch.ones(3, 5, 6, 1), tmp_path, print_log=False)
    assert nibabel.load(tmp_path / "scan_mask.nii.gz").shape == (5, 6, 1, 3)


def test_series_folders_with_dotted_names_do_not_collide(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    for series in ("1.2.840.1", "1.2.840.2"):
        (tmp_path / "in" / series).mkdir()
        save(torch.ones(1, 2, 2, 2), tmp_path / "out", image=f"../in/{series}", print_log=False)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "1.2.840.1_mask.nii.gz",
        "1.2.840.2_mask.nii.gz",
    ]


def test_nothing_half_written_is_left(tmp_path, monkeypatch):
    target = tmp_path / "scan_mask.nii.gz"
    target.write_bytes(b"the user's own file")

    def full_disk(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(nibabel, "save", full_disk)
    with pytest.raises(RuntimeError, match="No space left on device"):
        save(torch.ones(1, 2, 2, 2), tmp_path, print_log=False)
    assert target.read_bytes() == b"the user's own file"
    assert list(tmp_path.iterdir()) == [target]


def test_the_log_names_the_file(tmp_path, caplog):
    with caplog.at_level(logging.INFO, logger="monai_margincal"):
        save(torch.ones(1, 2, 2, 2), tmp_path)
    assert caplog.messages == [f"wrote {tmp_path}/scan_mask.nii.gz"]
