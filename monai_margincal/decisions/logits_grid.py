"""A label seen from the grid of the logits, where a chain has turned, mirrored and cropped the image but not the label."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from monai.data import MetaTensor

__all__ = ["common_grid"]

#: In voxels: how far a corner may lie from where it is after rounding; from here on it would be another voxel's.
_MOST = 0.5


def common_grid(logits: MetaTensor, labels: MetaTensor, where: str) -> tuple[torch.Tensor, torch.Tensor]:
    """The part of a case that has both logits and labels, both on the grid of the logits.

    Args:
        logits: (C, ...).
        labels: class indices (...), of as many dimensions in space.
        where: what messages call the case.

    Returns:
        logits (C, ...) and labels (...) of the same size in space; no voxel is interpolated.

    Raises:
        ValueError: the grids are not made of the same voxels, or do not overlap.

    Example:
        >>> affine = torch.diag(torch.tensor([-1.0, 1.0, 1.0, 1.0]))  # the first axis runs the other way
        >>> affine[0, 3] = 3
        >>> logits = MetaTensor(torch.arange(4.0).reshape(1, 4, 1, 1), affine=affine)
        >>> labels = MetaTensor(torch.arange(6).reshape(6, 1, 1), affine=torch.eye(4))
        >>> [part.flatten().tolist() for part in common_grid(logits, labels, "case")]
        [[0.0, 1.0, 2.0, 3.0], [3, 2, 1, 0]]
    """
    size = tuple(logits.shape[1:])
    matrix, shift = _steps(logits, labels, len(size))
    turned, moved = np.rint(matrix), np.rint(shift)
    corners = np.array(list(itertools.product(*[(0, length - 1) for length in size])), dtype=float)
    apart = float(np.abs(corners @ (matrix - turned).T + shift - moved).max())
    turns = bool((np.abs(turned).sum(0) == 1).all() and (np.abs(turned).sum(1) == 1).all())
    if not turns or not apart < _MOST:
        raise ValueError(
            f"{where}: found logits on a grid of other voxels than the label's, expected the label's voxels, turned, mirrored or "
            "cropped, but not resampled"
        )
    axes = [
        int(np.abs(turned[:, axis]).argmax()) for axis in range(len(size))
    ]  # axis of the label along each of the logits'
    shown = labels.as_tensor().permute(*axes)
    inside: list[slice] = []
    for axis, (length, labelled) in enumerate(zip(size, shown.shape, strict=True)):
        forward, first = turned[axes[axis], axis] > 0, int(moved[axes[axis]])
        if not forward:
            shown = shown.flip(axis)
            first = labelled - 1 - first
        low, high = max(0, -first), min(length, labelled - first)
        if low >= high:
            raise ValueError(f"{where}: found logits that lie outside of the label, expected logits of its voxels")
        inside.append(slice(low, high))
        shown = shown.narrow(axis, low + first, high - low)
    return logits.as_tensor()[(slice(None), *inside)], shown


def _steps(logits: MetaTensor, labels: MetaTensor, dims: int) -> tuple[np.ndarray, np.ndarray]:
    """What takes indices of the logits' voxels to those of the label's: a matrix and a shift."""
    own, other = (np.asarray(part.affine.cpu(), dtype=float) for part in (logits, labels))
    inverse = np.linalg.inv(other[:dims, :dims])
    return inverse @ own[:dims, :dims], inverse @ (own[:dims, -1] - other[:dims, -1])
