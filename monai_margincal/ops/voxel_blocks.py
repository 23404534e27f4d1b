"""How the blockwise computations cut a problem into blocks of voxels, and how the target of a block is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from ..labels import class_labels
from .targets import soft_labels

__all__ = ["TargetForm", "blocks_of", "count_valid", "flattened", "read_target", "voxels_per_block"]

#: elements of one block and one thread, counting the channels and a few more numbers per voxel: small enough for the caches of
#: a core, large enough for the calls in between not to matter
_ELEMENTS_PER_THREAD = 131072
_NUMBERS_PER_VOXEL = 4
#: with many threads, or little to do, a block must not rival the logits in size
_LEAST_BLOCKS = 16
_LEAST_VOXELS = 4096
#: on an accelerator a block has to fill the device, not a cache
_ELEMENTS_ON_DEVICE = 1 << 23


class TargetForm(NamedTuple):
    """How a target is to be read; `targets` has the rules.

    ``class_mask`` is bool (B, C), False for a class that was not annotated in a case: it has no terms and does not compete.
    A case with fewer than two annotated classes has no margins, so its voxels count as ignored.
    """

    holds_indices: bool
    num_classes: int
    ignore_index: int | None = None
    class_mask: torch.Tensor | None = None
    classes_in_messages: str = ""


def count_valid(logits: torch.Tensor, target: torch.Tensor, form: TargetForm) -> int:
    """Number of voxels that count; raises for a target that `blockwise_loss` refuses."""
    if form.ignore_index is None and form.class_mask is None:
        return logits.numel() // logits.shape[1]
    logits, target, *_ = flattened(logits, target)
    count = 0
    for block in blocks_of(logits, voxels_per_block(logits, form.num_classes)):
        labels, valid = read_target(target, block, form)
        count += labels[:, :1].numel() if valid is None else int(valid.sum())
    return count


def flattened(logits: torch.Tensor, target: torch.Tensor, *others: torch.Tensor | None) -> tuple[Any, ...]:
    """The tensors with their spatial dimensions as one, where that needs no copy of any of them; numbers are left alone."""
    tensors = (logits, target, *others)
    if logits.ndim > 3 and all(t is None or t.ndim == 0 or _is_even(t) for t in tensors):
        return tuple(t if t is None or t.ndim == 0 else t.flatten(2) for t in tensors)
    return tensors


def _is_even(tensor: torch.Tensor) -> bool:
    """Whether one stride leads through all spatial dimensions."""
    step = None
    for size, stride in zip(reversed(tensor.shape[2:]), reversed(tensor.stride()[2:]), strict=True):
        if size != 1:
            if step is not None and stride != step:
                return False
            step = stride * size
    return True


def voxels_per_block(logits: torch.Tensor, num_classes: int) -> int:
    if logits.device.type != "cpu":
        return max(1, _ELEMENTS_ON_DEVICE // num_classes)
    fitting = _ELEMENTS_PER_THREAD * torch.get_num_threads() // (num_classes + _NUMBERS_PER_VOXEL)
    fair = logits.numel() // logits.shape[1] // _LEAST_BLOCKS
    return max(1, min(fitting, max(fair, _LEAST_VOXELS)))


def blocks_of(logits: torch.Tensor, voxels: int) -> Iterator[tuple[slice, ...]]:
    """Index tuples (batch, channels, *spatial) of blocks of at most ``voxels`` voxels that together cover the tensor."""
    sizes = (logits.shape[0], *logits.shape[2:])
    if 0 in sizes:
        return
    # the innermost dimensions that fit whole; the next one is cut, the outer ones are walked one by one
    inner, cut = 1, len(sizes) - 1
    while cut > 0 and inner * sizes[cut] <= voxels:
        inner *= sizes[cut]
        cut -= 1
    step = max(1, voxels // inner)
    whole = tuple(slice(None) for _ in sizes[cut + 1 :])
    for outer in _positions(sizes[:cut]):
        for start in range(0, sizes[cut], step):
            block = (*outer, slice(start, start + step), *whole)
            yield (block[0], slice(None), *block[1:])


def _positions(sizes: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    if not sizes:
        yield ()
        return
    for position in range(sizes[0]):
        for rest in _positions(sizes[1:]):
            yield (slice(position, position + 1), *rest)


def read_target(
    target: torch.Tensor, block: tuple[slice, ...], form: TargetForm
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Labels (b, 1 or C, L) of a block and which of its voxels are valid (b, 1, L), None where all are."""
    part = target[block].flatten(2) if target.ndim > 2 else target[block].unsqueeze(-1)
    classes, ignore_index = form.num_classes, form.ignore_index
    if form.holds_indices:
        labels, valid = class_labels(part, classes, ignore_index, classes_in_messages=form.classes_in_messages)
    else:
        labels, valid = soft_labels(part, classes, ignore_index, torch.promote_types(part.dtype, torch.float32))
    if form.class_mask is not None:
        annotated = form.class_mask[block[0]]
        enough = (annotated.sum(dim=1) >= 2)[:, None, None]
        valid = enough.expand(-1, 1, labels.shape[2]) if valid is None else valid & enough
        _refuse_unannotated(labels, valid, annotated, form)
    if valid is not None and target.device.type == "cpu" and bool(valid.all()):
        valid = None
    return labels, valid


def _refuse_unannotated(labels: torch.Tensor, valid: torch.Tensor, annotated: torch.Tensor, form: TargetForm) -> None:
    if form.holds_indices:
        known = annotated.gather(1, labels[:, 0]).unsqueeze(1)
        wrong = valid & ~known
        found = labels[wrong]
    else:
        carried = (labels != 0) & ~annotated[:, :, None] & valid
        wrong = carried.any(dim=1)
        found = carried.any(dim=2).nonzero()[:, 1]
    if bool(wrong.any()):
        raise ValueError(
            f"target labels voxels with the class(es) {sorted(set(found.tolist()))} in a case where class_mask says "
            "that they were not annotated: expected class_mask True for every class that a case's target holds"
        )
