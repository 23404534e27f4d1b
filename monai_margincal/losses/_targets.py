"""How losses that need a target in one piece read it; the rules are those of `monai_margincal.ops.targets`."""

from __future__ import annotations

import torch

from ..labels import class_labels
from ..ops import largest_class
from ..ops.targets import holds_class_indices, soft_labels, with_channel

__all__ = ["hard_target", "one_hot_target"]


def one_hot_target(
    input: torch.Tensor, target: torch.Tensor, ignore_index: int | None, only_indices: bool = False, check: bool = True
) -> tuple[torch.Tensor, torch.Tensor]:
    """Read any form of target as one value per class, and tell which voxels count.

    Args:
        input: logits (B, N, *spatial).
        target: class indices or one value per class.
        ignore_index: label of the voxels that do not count, or None.
        only_indices: refuse one value per class.
        check: False for a target that was checked before.

    Returns:
        the target (B, C, *spatial), float32 or float64, 0 in ignored voxels, with C = N, or 2 for N = 1; the valid voxels, bool
        (B, 1, *spatial).

    Raises:
        ValueError: shapes or labels are not as declared.
    """
    num_classes = max(input.shape[1], 2)
    dtype = torch.promote_types(input.dtype, torch.float32)
    holds_indices = holds_class_indices(input, target, only_indices)
    target = with_channel(input, target)
    if holds_indices:
        labels, valid = class_labels(target, num_classes, ignore_index, check=check)
        shape = (labels.shape[0], num_classes, *labels.shape[2:])
        # made from the labels and not in place, for `torch.func.vmap`
        values = labels.new_zeros((), dtype=dtype).expand(shape).scatter(1, labels, 1)
        if valid is not None:
            values.masked_fill_(~valid, 0)
    else:
        values, valid = soft_labels(target, num_classes, ignore_index, dtype, check=check)
    return values, values.new_ones((), dtype=torch.bool).expand(values[:, :1].shape) if valid is None else valid


def hard_target(
    input: torch.Tensor, target: torch.Tensor, ignore_index: int | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Read any form of target that names one class per voxel as class indices, and tell which voxels count.

    Returns:
        labels, int64 (B, 1, *spatial), 0 in ignored voxels; the valid voxels, bool (B, 1, *spatial).

    Raises:
        ValueError: shapes or labels are not as declared, or a voxel is shared by several classes.
    """
    num_classes = max(input.shape[1], 2)
    if holds_class_indices(input, target):
        labels, valid = class_labels(with_channel(input, target), num_classes, ignore_index)
        return labels, torch.ones_like(labels, dtype=torch.bool) if valid is None else valid
    values, valid = one_hot_target(input, target, ignore_index)
    shared = (values != 0) & (values != 1)
    if bool(shared.any()):
        raise ValueError(
            f"target holds soft labels ({int(shared.any(dim=1).sum())} voxel(s) with values other than 0 and 1): expected one "
            "class per voxel"
        )
    return largest_class(values, keepdim=True), valid
