"""The one confusion matrix, counted exactly, and the per-class quantities that follow from it.

Everywhere in the package predictions come first, ``(y_pred, y)``, and a matrix has true classes as rows and predicted ones as
columns. The argument ``absent`` of each quantity says what 0/0 gives.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
import torch
from monai.data import MetaTensor

from ..labels import class_labels

#: Confusion matrices (..., C, C); what is computed from them is of the same kind.
Matrices = TypeVar("Matrices", torch.Tensor, np.ndarray)

_DISCRETE_FIRST = "Logits and probabilities must be made discrete first, e.g. with AsDiscrete(argmax=True)."
#: what the message about a wrong class index ends with
_ADVICE = {
    "y_pred": _DISCRETE_FIRST,
    "y": "Pass ignore_index for true labels that must not count, or a larger num_classes.",
}

#: Voxels counted at a time: temporaries stay in cache on a CPU, and small on a GPU.
_CHUNK_ON_CPU = 1 << 18
_CHUNK_ON_DEVICE = 1 << 25


def confusion_matrix(
    y_pred: torch.Tensor, y: torch.Tensor, num_classes: int, ignore_index: int | None = None
) -> torch.Tensor:
    """Count the voxels of each pair (true class, predicted class) of ONE image.

    Args:
        y_pred: prediction, channel first: class indices (1, ...) of any integer or integral float dtype, or one-hot
            (num_classes, ...). Not logits or probabilities.
        y: ground truth, in either form, of the same spatial shape.
        num_classes: number of classes C, background included.
        ignore_index: voxels whose true class has this id are not counted, whatever is predicted there. It may lie
            outside 0..C-1 (255, -1) if `y` holds indices.

    Returns:
        int64 tensor (C, C) on the CPU: rows are true classes, columns predicted ones. Exact at any number of voxels.

    Raises:
        ValueError: the spatial shapes differ; the number of channels is neither 1 nor `num_classes`; indices are not
            whole numbers of 0..C-1 (the message lists them); channels are not one-hot.

    Example:
        >>> import torch
        >>> from monai_margincal.metrics import confusion_matrix
        >>> confusion_matrix(torch.tensor([[0, 1, 1, 0]]), torch.tensor([[0, 1, 0, 255]]), num_classes=2, ignore_index=255)
        tensor([[1, 1],
                [0, 1]])
    """
    predicted, true = _channel_first(y_pred, num_classes, "y_pred"), _channel_first(y, num_classes, "y")
    if predicted.shape[1:] != true.shape[1:]:
        raise ValueError(
            "y_pred and y must have the same spatial shape, "
            f"found {tuple(predicted.shape[1:])} and {tuple(true.shape[1:])}."
        )
    chunk = _CHUNK_ON_CPU if true.device.type == "cpu" else _CHUNK_ON_DEVICE
    matrix = torch.zeros(num_classes, num_classes, dtype=torch.int64, device=true.device)
    predicted, true = predicted.flatten(1).to(true.device), true.flatten(1)
    for p, t in zip(predicted.split(chunk, dim=1), true.split(chunk, dim=1), strict=True):
        t, valid = _class_indices(t, num_classes, "y", ignore_index)
        if valid is not None:
            p, t = p[:, valid], t[valid]
        p, _ = _class_indices(p, num_classes, "y_pred", None)
        matrix += count_pairs(p, t, num_classes)
    return matrix.cpu()


def count_pairs(
    y_pred: torch.Tensor, y: torch.Tensor, num_classes: int, valid: torch.Tensor | None = None
) -> torch.Tensor:
    """Count checked pairs of class indices: the matrix that everything else is made of.

    Args:
        y_pred: predicted classes, int64, any shape; 0 ... C - 1 in valid voxels.
        y: true classes, likewise, of the same shape.
        num_classes: C.
        valid: bool, which voxels count; None: all of them. With it nothing waits for the device; without it, the count does.

    Returns:
        int64 (C, C) on the device of `y`, rows = truth.

    Example:
        >>> count_pairs(torch.tensor([1, 1, 0]), torch.tensor([0, 1, 0]), 2)
        tensor([[1, 1],
                [0, 1]])
        >>> count_pairs(torch.tensor([1, 1, 0]), torch.tensor([0, 1, -1]), 2, valid=torch.tensor([True, True, False]))
        tensor([[0, 1],
                [0, 1]])
    """
    cells, cell = num_classes * num_classes, (y * num_classes + y_pred).flatten()
    if valid is None:
        counts = torch.bincount(cell, minlength=cells)
    else:
        # bincount would wait for the device to learn the largest value; the last cell takes what does not count
        cell = torch.where(valid.flatten(), cell, cells)
        counts = torch.zeros(cells + 1, dtype=torch.int64, device=cell.device)
        counts = counts.index_add_(0, cell, torch.ones_like(cell))[:cells]
    return counts.reshape(num_classes, num_classes)


def class_union(matrix: Matrices) -> Matrices:
    """Voxels that are of a class or predicted as it, (..., C), in the dtype of the matrix.

    Example:
        >>> class_union(np.array([[8, 2], [1, 3]]))
        array([11,  6])
    """
    return _in_kind(matrix, _union(_tensor(matrix)))


def class_iou(matrix: Matrices, absent: float = math.nan) -> Matrices:
    """Intersection over union per class, float64 (..., C).

    Args:
        matrix: counts or shares of voxels, (..., C, C), rows = truth: a tensor or an array.
        absent: the value of 0/0, a class seen in neither truth nor prediction. The paper's tables take 1.

    Source: Li, Yu, Zhang (arXiv:2011.01462), whose IoU is taken over the whole set.

    Example:
        >>> import torch
        >>> from monai_margincal.metrics import class_iou
        >>> class_iou(torch.tensor([[8, 2, 0], [0, 10, 0], [0, 0, 0]]))
        tensor([0.8000, 0.8333,    nan], dtype=torch.float64)
        >>> class_iou(np.array([[8, 2, 0], [0, 10, 0], [0, 0, 0]]), absent=1.0).round(4)
        array([0.8   , 0.8333, 1.    ])
    """
    counts = _tensor(matrix)
    return _in_kind(matrix, _share(counts, _union(counts), absent))


def class_dice(matrix: Matrices, absent: float = math.nan) -> Matrices:
    """Dice coefficient (F1 score) per class, twice the intersection over the sum of both sizes, float64 (..., C).

    Of one confusion matrix it is ``2 IoU / (1 + IoU)``, so that it ranks as the IoU does.

    Args:
        matrix: as for `class_iou`.
        absent: the value of 0/0, a class seen in neither truth nor prediction.

    Example:
        >>> class_dice(np.array([[8, 2], [0, 10]])).round(4)
        array([0.8889, 0.9091])
    """
    counts = _tensor(matrix)
    return _in_kind(matrix, _share(2 * counts, counts.sum(-1) + counts.sum(-2), absent))


def class_recall(matrix: Matrices, absent: float = math.nan) -> Matrices:
    """Correct voxels of a class over its true ones ("pixel accuracy" of the paper's tables), float64 (..., C).

    Args:
        matrix: as for `class_iou`.
        absent: the value of 0/0, a class without true voxels.

    Example:
        >>> class_recall(np.array([[1, 1], [0, 0]]), absent=1.0)
        array([0.5, 1. ])
    """
    counts = _tensor(matrix)
    return _in_kind(matrix, _share(counts, counts.sum(-1), absent))


def class_precision(matrix: Matrices, absent: float = math.nan) -> Matrices:
    """Correct voxels of a class over those predicted as it, float64 (..., C).

    Args:
        matrix: as for `class_iou`.
        absent: the value of 0/0, a class that was never predicted.

    Example:
        >>> class_precision(np.array([[1, 1], [0, 1]]))
        array([1. , 0.5])
    """
    counts = _tensor(matrix)
    return _in_kind(matrix, _share(counts, counts.sum(-2), absent))


def _hit(matrix: torch.Tensor) -> torch.Tensor:
    return matrix.diagonal(dim1=-2, dim2=-1)


def _union(matrix: torch.Tensor) -> torch.Tensor:
    return matrix.sum(-1) + matrix.sum(-2) - _hit(matrix)


def _share(matrix: torch.Tensor, whole: torch.Tensor, absent: float) -> torch.Tensor:
    return torch.where(whole > 0, _hit(matrix).double() / whole.double(), absent)


def _tensor(matrix: Matrices) -> torch.Tensor:
    # `torch.as_tensor` would take it to the default device
    return torch.from_numpy(matrix) if isinstance(matrix, np.ndarray) else matrix


def _in_kind(matrix: Matrices, values: torch.Tensor) -> Matrices:
    return values.numpy() if isinstance(matrix, np.ndarray) else values


def _channel_first(value: torch.Tensor, num_classes: int, name: str) -> torch.Tensor:
    """Return the plain tensor, at least two-dimensional, with 1 or `num_classes` channels."""
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{name} must be a tensor, found {type(value).__name__}.")
    channels = value.shape[0] if value.dim() > 1 else 0
    if channels not in (1, num_classes):
        raise ValueError(
            f"{name} must have 1 channel (class indices) or {num_classes} (one-hot), "
            f"found an image of shape {tuple(value.shape)}, channel first."
        )
    value = value.detach()
    return value.as_tensor() if isinstance(value, MetaTensor) else value


def _class_indices(
    voxels: torch.Tensor, num_classes: int, name: str, ignore_index: int | None
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Turn voxels (1, n) of indices or (num_classes, n) one-hot into int64 indices (n,), and which count (None: all)."""
    if voxels.shape[0] == 1:
        return class_labels(voxels[0], num_classes, ignore_index, where=name, advice=_ADVICE[name])
    member = voxels == 1
    neither = (voxels != 0) != member
    if neither.any():
        raise ValueError(
            f"{name} has {num_classes} channels but is not one-hot: it holds the value "
            f"{voxels[neither][0].item():g}, expected 0 and 1. {_DISCRETE_FIRST}"
        )
    classes = member.sum(0, dtype=torch.int32)
    if (classes != 1).any():
        raise ValueError(
            f"{name} has {num_classes} channels but is not one-hot: it holds voxels of "
            f"{sorted(set(classes.unique().tolist()) - {1})} classes, expected exactly 1."
        )
    indices = torch.zeros_like(classes, dtype=torch.int64)
    for k in range(1, num_classes):  # argmax along the first axis is 60 times slower
        indices.add_(member[k], alpha=k)
    return indices, None if ignore_index is None else indices != ignore_index
