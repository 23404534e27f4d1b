"""Cross-entropy of class indices with a channel, as MONAI's data come, where voxels of a void label do not count."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from ._targets import hard_target

#: no class has this id, so it cannot be mistaken for one that a user ignores
_IGNORED = -100


class CrossEntropyLoss(nn.Module):
    """Mean cross-entropy of the voxels that count.

    Args:
        ignore_index: label of voxels that do not count. If none is left, the loss is 0 with gradients of 0.

    Raises:
        ValueError: on call: a label is neither a class nor ignored, or the shapes do not fit.

    Example:
        >>> loss = CrossEntropyLoss(ignore_index=255)
        >>> print(f"{loss(torch.zeros(1, 2, 3), torch.tensor([[[0, 1, 255]]])):.4f}")
        0.6931
    """

    def __init__(self, ignore_index: int | None = None) -> None:
        super().__init__()
        self.ignore_index = ignore_index

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """The value of the loss, float32 or float64.

        Args:
            input: logits (B, C, *spatial).
            target: class indices (B, 1, *spatial) or (B, *spatial) of any integer or integral float dtype.
        """
        labels, valid = hard_target(input, target, self.ignore_index)
        # whatever the logits of an ignored voxel are, NaN too, they get a gradient of 0
        logits = torch.where(valid, input, 0).to(torch.promote_types(input.dtype, torch.float32))
        labels = labels.masked_fill(~valid, _IGNORED).squeeze(1)
        total = F.cross_entropy(logits, labels, ignore_index=_IGNORED, reduction="sum")
        return total / valid.sum().clamp(min=1)

    def extra_repr(self) -> str:
        """What the loss was made with."""
        return f"ignore_index={self.ignore_index}"
