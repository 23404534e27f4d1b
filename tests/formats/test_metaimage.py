"""MetaImage: every voxel type, voxels in the file or beside it, and damage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk
from label_files import LABEL, assert_counted_as_written, damage

from monai_margincal.counting.label_file import count_file


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("name", ["label.mha", "label.mhd"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "int32", "float32"])
def test_types_and_compression(tmp_path: Path, name: str, dtype: str, compressed: bool) -> None:
    assert_counted_as_written(tmp_path / name, dtype, compressed)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("plain.mha", "cut"),
        ("plain.mha", "longer"),
        ("packed.mha", "cut"),
        ("packed.mha", "longer"),
        ("packed.mha", "flipped"),
    ],
)
def test_damaged_voxels(tmp_path: Path, name: str, fault: str) -> None:
    """A compressed file with a flipped byte is read by ITK without a complaint; here its checksum is looked at."""
    path = tmp_path / name
    sitk.WriteImage(sitk.GetImageFromArray(LABEL.astype(np.uint16)), str(path), name.startswith("packed"))
    damage(path, fault)
    with pytest.raises(ValueError, match=name.replace(".", r"\.")):
        count_file(path)
