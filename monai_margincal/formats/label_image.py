"""What is known of a label file before its voxels are read, and where the voxels are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class VoxelBody:
    """Where the voxels of a file lie, for reading them as a stream.

    Attributes:
        file: the file with the voxels (not the header's, where the two are apart).
        start: bytes of ``file`` before the body.
        encoding: ``"raw"``, ``"gzip"`` or ``"zlib"``.
        skip: bytes between the start of the *decoded* body and the first voxel.
        dtype: type of a voxel, with its byte order.
        voxels: how many there must be.
    """

    file: Path
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
        body: where to stream the voxels from; None where only `load` reads them right.
        reader: name of the general reader that `load` uses.
        load: reads all voxels with the general reader, values as they are meant (slope and intercept applied).
        channel_axis: the axis of ``shape`` that may hold one-hot channels.
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


def voxel_count(path: Path, shape: tuple[int, ...]) -> int:
    """Number of voxels of ``shape``; a ValueError naming the file if an axis is not positive."""
    if not shape or any(size < 1 for size in shape):
        raise ValueError(f"{path}: found the shape {shape} in the header, expected sizes of at least 1")
    count = 1
    for size in shape:
        count *= int(size)
    return count
