"""Arrays that NumPy saved: MONAI reads them as images; as labels they say nothing about spacing or orientation."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from ..errors import naming_files
from .format import Format


def check_arrays(path: Path, allow_gaps: bool = False) -> None:
    """Raise a ValueError unless a file holds what its header says: NumPy reads no further than the last number."""
    with naming_files(path, "cannot be read, expected arrays as NumPy saves them", raises=ValueError):
        if path.suffix.lower() == ".npz":
            with zipfile.ZipFile(path) as archive:
                damaged = archive.testzip()
            if damaged is not None:
                raise ValueError(f"{path}: found a wrong checksum of {damaged!r}: the file is damaged")
            return
        array = np.load(path, mmap_mode="r")  # with which a short file is an error
        expected = array.offset + array.nbytes
        if path.stat().st_size != expected:
            raise ValueError(f"{path}: found {path.stat().st_size} bytes, expected {expected} as the header says")


FORMAT = Format((".npy", ".npz"), describe=None, check_scan=check_arrays)
