"""Small label files, and the large real ones, for tests of their readers."""

from __future__ import annotations

from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk
from shared import SHARED

from monai_margincal.counting.label_file import count_file
from monai_margincal.counting.voxel_counts import value_counts
from monai_margincal.formats import describe_label

DATA = (SHARED or Path()) / "data"
LABEL = np.random.default_rng(0).integers(0, 4, (9, 8, 7))


def unique(array: np.ndarray) -> dict[int, int]:
    values, counts = np.unique(array, return_counts=True)
    return {int(value): int(count) for value, count in zip(values, counts, strict=True)}


def save(path: Path, array: np.ndarray, affine: np.ndarray | None = None, **header: float) -> Path:
    image = nib.Nifti1Image(array, np.eye(4) if affine is None else affine, dtype=array.dtype)
    for field, value in header.items():
        image.header[field] = value
    nib.save(image, path)
    return path


def assert_counted_as_written(path: Path, dtype: str, compressed: bool) -> None:
    """Write a label by ITK, and expect that it is counted as a stream, with its size and spacing."""
    array = LABEL.astype(dtype)
    image = sitk.GetImageFromArray(array.transpose())
    image.SetSpacing((0.5, 0.6, 2.0))
    sitk.WriteImage(image, str(path), compressed)
    count = count_file(path)
    assert count.values == unique(array) == value_counts(describe_label(path).load())
    assert count.shape == array.shape
    assert count.spacing == pytest.approx((0.5, 0.6, 2.0))
    assert "stream" in count.reader


def damage(path: Path, fault: str) -> None:
    """Cut the end of a file off, put bytes behind it, or change one near it."""
    content = bytearray(path.read_bytes())
    if fault == "cut":
        content = content[:-3]
    elif fault == "longer":
        content += b"abc"
    else:
        content[-20] ^= 0x55
    path.write_bytes(content)


def assert_damage_is_refused(path: Path, fault: str) -> None:
    """A file of SimpleITK, compressed where its name says packed, cut off, prolonged or with a byte flipped."""
    sitk.WriteImage(sitk.GetImageFromArray(LABEL.astype(np.uint16)), str(path), path.name.startswith("packed"))
    damage(path, fault)
    with pytest.raises(ValueError, match=path.name.replace(".", r"\.")):
        count_file(path)
