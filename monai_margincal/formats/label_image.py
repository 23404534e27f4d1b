"""What is known about a label file before its voxels are read, and where the voxels are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class VoxelBody:
    """Where the voxels of an image lie, for reading them as a stream.

    Attributes:
        files: the files with the voxels, in order, with equally many in each (not the header's file, where it is separate).
        start: bytes of each file before the body.
        encoding: ``"raw"``, ``"gzip"``, ``"zlib"``, ``"bzip2"``, ``"text"`` (numbers between blanks) or ``"hex"``.
        skip: bytes between the start of the *decoded* body and the first voxel.
        dtype: type of a voxel, with its byte order.
        voxels: how many there must be in all files together.
    """

    files: tuple[Path, ...]
    start: int
    encoding: str
    skip: int
    dtype: np.dtype
    voxels: int


@dataclass(frozen=True)
class LabelImage:
    """A label file as its header describes it.

    Attributes:
        path: the file or, for a DICOM series, its folder.
        format: name of the format.
        shape: size along every stored axis, the fastest first, as stored.
        dtype: name of the stored voxel type.
        affine: voxel indices to millimetres in RAS orientation, (4, 4) float64; None where the header does not say.
        body: where the voxels lie; None where only the general reader finds them.
        reader: name of the general reader that `load` uses.
        load: reads all voxels with the general reader, with the values that are meant (slope and intercept applied).
        channel_axis: the axis of ``shape`` that may hold one-hot channels.
        as_stored: the numbers in ``body`` are the values meant. Otherwise only `load` gives those.
    """

    path: Path
    format: str
    shape: tuple[int, ...]
    dtype: str
    affine: np.ndarray | None
    body: VoxelBody | None
    reader: str
    load: Callable[[], np.ndarray]
    channel_axis: int = -1
    as_stored: bool = True


def voxel_count(path: Path, shape: tuple[int, ...]) -> int:
    """Number of voxels of ``shape``; a ValueError naming the file if an axis is not positive."""
    if not shape or any(size < 1 for size in shape):
        raise ValueError(f"{path}: found the shape {shape} in the header, expected sizes of at least 1")
    count = 1
    for size in shape:
        count *= int(size)
    return count
