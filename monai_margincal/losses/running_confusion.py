"""The confusion matrix of a training run, averaged over its steps: whole-set statistics that a mini-batch cannot give."""

from __future__ import annotations

import torch
from torch import nn

from ..metrics import class_iou, class_union, count_pairs
from ..ops import largest_class
from ..ops.targets import holds_class_indices, plain_tensor
from ..processes.tensors import sum_over_ranks
from .buffers import with_values

__all__ = ["RunningConfusion"]


class RunningConfusion(nn.Module):
    """Moving average of the hard confusion matrix, as shares of all voxels.

    A step contributes its confusion matrix divided by its number of valid voxels; steps are averaged with weights that fall by
    ``momentum`` per step and add up to 1 from the first step on. Under `torch.distributed` the counts of all ranks are added
    first, so that every rank holds the same statistics. Before the first step everything is 0 and the IoU is 1 (0/0).

    The matrix is a buffer: it moves with ``.to()`` and is in ``state_dict()``. Updating neither waits for the device nor keeps a
    graph.

    Args:
        num_classes: C >= 2.
        momentum: weight of the past, in [0, 1). 0.98 remembers about 50 steps.
        ignore_index: label of voxels that do not count.

    Raises:
        ValueError: an argument is outside its range.

    Example:
        >>> running = RunningConfusion(num_classes=2)
        >>> logits = torch.tensor([[[2.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, -1.0]]])  # predicts 0, 1, 1, 0
        >>> running.update(logits, torch.tensor([[0, 1, 0, 0]]))
        >>> running.iou  # class 0: 2 of 3, class 1: 1 of 2
        tensor([0.6667, 0.5000], dtype=torch.float64)
    """

    average: torch.Tensor
    updates: torch.Tensor

    def __init__(self, num_classes: int, momentum: float = 0.98, ignore_index: int | None = None) -> None:
        super().__init__()
        if num_classes < 2:
            raise ValueError(f"num_classes must be >= 2, found {num_classes!r}")
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum must be in [0, 1), found {momentum!r}")
        self.num_classes = num_classes
        self.momentum = momentum
        self.ignore_index = ignore_index
        self.register_buffer("average", with_values([[0.0] * num_classes] * num_classes, torch.float64))
        self.register_buffer("updates", with_values(0, torch.int64))

    @torch.no_grad()
    def update(self, logits: torch.Tensor, target: torch.Tensor) -> None:
        """Add one step; a step without valid voxels (on all ranks) changes nothing.

        Args:
            logits: (B, C, *spatial), or (B, 1, *spatial) for two classes with the logit of class 1 against 0.
            target: class indices (B, 1, *spatial) or (B, *spatial), or one value per class (B, C, *spatial). Labels outside
                0 ... C - 1 do not count; reporting them as errors is left to the loss.

        Raises:
            ValueError: the shapes do not fit.
        """
        logits, target = plain_tensor(logits), plain_tensor(target)
        channels, classes = logits.shape[1], self.num_classes
        if (2 if channels == 1 else channels) != classes:
            raise ValueError(f"logits have {channels} channels: expected those of {classes} classes")
        indices = holds_class_indices(logits, target)
        predicted = (logits[:, 0] > 0).long() if channels == 1 else largest_class(logits)
        if indices:
            labels = target.reshape(predicted.shape).long()
        else:
            labels = (target[:, 0] > 0.5).long() if channels == 1 else largest_class(target)
        valid = (labels >= 0) & (labels < classes)
        if self.ignore_index is not None:
            ignored = labels == self.ignore_index
            if not indices:
                ignored = ignored | (target == self.ignore_index).all(dim=1)
            valid &= ~ignored
        shares = sum_over_ranks(count_pairs(predicted, labels, classes, valid)).to(self.average)
        voxels = shares.sum()
        moved = self.momentum * self.average + (1 - self.momentum) * shares / voxels.clamp_min(1)
        self.average.copy_(torch.where(voxels > 0, moved, self.average))
        self.updates += (voxels > 0).to(self.updates)

    @property
    def matrix(self) -> torch.Tensor:
        """Shares of all voxels, true class by predicted class, float64 (C, C), adding up to 1 (to 0 before the first step)."""
        total = self.average.sum()
        return self.average / torch.where(total > 0, total, 1.0)

    @property
    def frequencies(self) -> torch.Tensor:
        """p_k: share of the voxels of every class, float64 (C,)."""
        return self.matrix.sum(dim=1)

    @property
    def union(self) -> torch.Tensor:
        """U_k: share of the voxels that are class k or are predicted as it, float64 (C,)."""
        return class_union(self.matrix)

    @property
    def iou(self) -> torch.Tensor:
        """J_k: IoU of every class, float64 (C,); 0/0 is 1."""
        return class_iou(self.matrix, absent=1.0)

    def extra_repr(self) -> str:
        """Arguments in the module's repr."""
        return f"num_classes={self.num_classes}, momentum={self.momentum}, ignore_index={self.ignore_index}"
