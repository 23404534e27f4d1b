"""NRRD: every voxel type, voxels in the file or beside it, and damage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk
from label_files import LABEL, assert_counted_as_written, damage, unique

from monai_margincal.counting.label_file import count_file


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("name", ["label.nrrd", "label.nhdr"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "int32", "float32"])
def test_types_and_compression(tmp_path: Path, name: str, dtype: str, compressed: bool) -> None:
    assert_counted_as_written(tmp_path / name, dtype, compressed)


def test_nrrd_encodings_without_a_stream(tmp_path: Path) -> None:
    nrrd = pytest.importorskip("nrrd")
    for encoding in ("ASCII", "bzip2"):
        path = tmp_path / f"{encoding}.nrrd"
        nrrd.write(str(path), LABEL.astype(np.uint8), {"encoding": encoding})
        if encoding == "ASCII":
            assert count_file(path).values == unique(LABEL)
            assert "SimpleITK" in count_file(path).reader
        else:
            with pytest.raises(ValueError, match=r"bzip2\.nrrd: cannot be read"):
                count_file(path)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("plain.nrrd", "cut"),
        ("plain.nrrd", "longer"),
        ("packed.nrrd", "cut"),
        ("packed.nrrd", "longer"),
        ("packed.nrrd", "flipped"),
    ],
)
def test_damaged_voxels(tmp_path: Path, name: str, fault: str) -> None:
    path = tmp_path / name
    sitk.WriteImage(sitk.GetImageFromArray(LABEL.astype(np.uint16)), str(path), name.startswith("packed"))
    damage(path, fault)
    with pytest.raises(ValueError, match=name.replace(".", r"\.")):
        count_file(path)
