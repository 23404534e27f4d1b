"""The logits and labels of one case, a slab at a time: checked, flat, in single precision."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ..labels import class_labels

__all__ = ["case_slabs", "expect_case", "label_slabs"]

#: Voxels that are looked at together: temporaries are this many rows of logits.
_SLAB = 1 << 18


def expect_case(
    logits: torch.Tensor, labels: torch.Tensor, num_classes: int, where: str, same_size: bool = True
) -> None:
    """Raise unless logits (C, ...), or (1, ...) for two classes, and labels (...) or (1, ...) belong to one case.

    Args:
        logits: of any dtype.
        labels: of any dtype.
        num_classes: C.
        where: what messages call the case.
        same_size: also compare the sizes.

    Raises:
        ValueError: they do not; the message gives the shapes.
    """
    spatial = tuple(logits.shape[1:])
    if logits.ndim < 2 or (logits.shape[0] != num_classes and not (logits.shape[0] == 1 and num_classes == 2)):
        raise ValueError(
            f"{where}: found logits of shape {tuple(logits.shape)}, expected one case, channel first, of {num_classes} classes"
        )
    found = tuple(labels.shape)
    if found not in (spatial, (1, *spatial)) and (same_size or labels.ndim not in (len(spatial), len(spatial) + 1)):
        raise ValueError(
            f"{where}: found labels of shape {found} for logits of shape {tuple(logits.shape)}, expected {spatial} "
            f"or {(1, *spatial)}"
        )


def case_slabs(
    logits: torch.Tensor, labels: torch.Tensor, num_classes: int, ignore_index: int | None, where: str
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Go through a case without ever copying it whole.

    Args:
        logits: (C, ...), or (1, ...) for two classes: the logit of class 1 against 0; on any device.
        labels: class indices (...), of the same size.
        num_classes: C.
        ignore_index: label of voxels that do not count; they are left out.
        where: what messages call the case.

    Yields:
        logits, float32 (C, n), and true classes, int64 (n,), both on the device of the logits.

    Raises:
        ValueError: a logit is NaN, a label is no class.

    Example:
        >>> slabs = case_slabs(torch.zeros(2, 3, 4), torch.ones(3, 4), num_classes=2, ignore_index=None, where="case")
        >>> [(logits.shape, truth.shape) for logits, truth in slabs]
        [(torch.Size([2, 12]), torch.Size([12]))]
    """
    axis = _outermost(logits) - 1
    step = max(1, _SLAB * logits.shape[axis + 1] // max(1, labels.numel()))
    for start in range(0, logits.shape[axis + 1], step):
        scores = logits.narrow(axis + 1, start, min(step, logits.shape[axis + 1] - start)).detach()
        part = labels.narrow(axis, start, scores.shape[axis + 1])
        flat, truth = scores.reshape(len(scores), -1), part.reshape(-1)
        # a single step along the axis may still be larger than a slab
        for first in range(0, len(truth), _SLAB):
            yield _checked(
                flat[:, first : first + _SLAB], truth[first : first + _SLAB], num_classes, ignore_index, where=where
            )


def label_slabs(labels: torch.Tensor, num_classes: int, ignore_index: int | None, where: str) -> Iterator[torch.Tensor]:
    """The true classes of a label (...), int64 (n,), a slab at a time, without those that do not count."""
    for part in labels.split(max(1, _SLAB * len(labels) // max(1, labels.numel()))):
        truth, valid = class_labels(part.detach().reshape(-1), num_classes, ignore_index, where=f"{where}, labels")
        yield truth if valid is None else truth[valid]


def _checked(
    logits: torch.Tensor, labels: torch.Tensor, num_classes: int, ignore_index: int | None, where: str
) -> tuple[torch.Tensor, torch.Tensor]:
    truth, valid = class_labels(labels.detach(), num_classes, ignore_index, where=f"{where}, labels")
    chunk, truth = logits.float(), truth.to(logits.device)
    if valid is not None:
        chosen = valid.to(logits.device)
        chunk, truth = chunk[:, chosen], truth[chosen]
    if chunk.isnan().any():
        raise ValueError(f"{where}: found a logit that is not a number (NaN), expected numbers")
    if len(chunk) == 1:
        chunk = torch.cat([torch.zeros_like(chunk), chunk])
    return chunk, truth


def _outermost(logits: torch.Tensor) -> int:
    """The spatial dimension along which neighbours lie furthest apart in memory: a slab across it is read in one go."""
    return max(range(1, logits.ndim), key=lambda axis: (logits.stride(axis) * (logits.shape[axis] > 1), -axis))
