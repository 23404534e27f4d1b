"""Cross-entropy of the hardest voxels, one half of nnU-Net's compound with Dice."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["TopKCrossEntropyLoss"]


class TopKCrossEntropyLoss(nn.Module):
    """Mean cross-entropy of that share of a batch's voxels for which it is largest.

    With `monai.losses.DiceLoss` in a `WeightedSumLoss` it is nnU-Net's ``DC_and_topk_loss``.

    Args:
        share: of the voxels, above 0 and up to 1; 1 is plain cross-entropy.

    Raises:
        ValueError: ``share`` is out of range.

    Source: Isensee et al., "nnU-Net: a self-configuring method for deep learning-based biomedical image segmentation", Nature
    Methods 18:203-211, 2021; ``TopKLoss`` of its code, with k = 10 percent.

    Example:
        >>> logits = torch.tensor([[[0.0, 0.0, 9.0, 0.0], [0.0, 9.0, 0.0, 9.0]]])
        >>> TopKCrossEntropyLoss(share=0.25)(logits, torch.tensor([[[0, 1, 0, 1]]]))
        tensor(0.6931)
    """

    def __init__(self, share: float = 0.1) -> None:
        super().__init__()
        if not 0 < share <= 1:
            raise ValueError(f"share: found {share!r}, expected a number above 0 and up to 1")
        self.share = share

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """The loss of logits (B, C, *spatial) and class indices (B, 1, *spatial), a scalar."""
        losses = nn.functional.cross_entropy(input, target[:, 0].long(), reduction="none").flatten()
        return losses.topk(max(1, int(self.share * losses.numel())), sorted=False).values.mean()

    def extra_repr(self) -> str:
        """The share."""
        return f"share={self.share}"
