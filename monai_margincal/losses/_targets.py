"""How losses that need a target in one piece read it; the rules are those of `monai_margincal.ops.targets`."""

from __future__ import annotations

import torch

from ..labels import class_labels
from ..ops import largest_class
from ..ops.targets import holds_class_indices, one_hot_target, with_channel

__all__ = ["hard_target"]


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
