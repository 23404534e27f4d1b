"""Counting one-hot labels: one channel per class, checked voxel by voxel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .value_counter import ValueCounter
from .voxel_counts import VoxelCounts, as_numpy

if TYPE_CHECKING:
    import torch

#: Number of voxels compared at once, in all channels.
_BLOCK_VOXELS = 1 << 18


def one_hot_voxel_counts(
    label: np.ndarray | torch.Tensor, ids: Sequence[int], ignore_index: int | None = None, where: str = "label"
) -> VoxelCounts:
    """Count the voxels of every class in a one-hot label.

    Args:
        label: (C, ...) with one channel per id in ascending order; every voxel is 1 in one channel and 0 in all others. A
            voxel that carries ``ignore_index`` in all channels is ignored.
        ids: the label value that each channel stands for (C,), ascending.
        ignore_index: value of ignored voxels; if it is one of ``ids``, that channel's voxels are ignored too.
        where: what messages call the label.

    Raises:
        ValueError: the number of channels is not C, a value is neither 0 nor 1 nor ignored in all channels, or a voxel
            belongs to no class or to several (overlapping structures cannot be counted once per voxel).

    Example:
        >>> one_hot_voxel_counts(np.array([[1, 1, 0], [0, 0, 1]]), ids=[0, 1])
        VoxelCounts(ids=(0, 1), counts=array([2, 1]), ignored=0)
    """
    array = as_numpy(label)
    if array.ndim < 2 or array.shape[0] != len(ids):
        raise ValueError(f"{where}: found shape {tuple(array.shape)}, expected one channel per class id {list(ids)}")
    if array.size == 0:
        raise ValueError(f"{where}: found an empty label of shape {tuple(array.shape)}, expected at least one voxel")
    expected = f"a one-hot label of {len(ids)} channels holding 0 and 1"
    counts = np.zeros(len(ids), np.int64)
    ignored = 0
    channels = array.reshape(len(ids), -1)
    for start in range(0, channels.shape[1], _BLOCK_VOXELS):
        block = channels[:, start : start + _BLOCK_VOXELS]
        if ignore_index is not None and ignore_index not in (0, 1):
            left_out = (block == ignore_index).all(axis=0)
            ignored += int(left_out.sum())
            block = block[:, ~left_out]
        hot = block == 1
        if not (hot | (block == 0)).all():
            found = ValueCounter(where, expected)
            found.add(np.ascontiguousarray(block))
            raise ValueError(f"{where}: found the values {sorted(found.counts())[:16]}, expected {expected}")
        per_voxel = hot.sum(axis=0)
        several, none = int((per_voxel > 1).sum()), int((per_voxel == 0).sum())
        if several or none:
            raise ValueError(
                f"{where}: found {several} voxel(s) in more than one class and {none} in none, expected {expected}, "
                "every voxel in exactly one of them. A label without a channel dimension needs EnsureChannelFirst before it."
            )
        counts += hot.sum(axis=1)
    if ignore_index is not None and ignore_index in ids:
        channel = list(ids).index(ignore_index)
        ignored += int(counts[channel])
        counts[channel] = 0
    return VoxelCounts(tuple(ids), counts, ignored)
