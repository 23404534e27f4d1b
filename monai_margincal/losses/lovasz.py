"""The Lovász-softmax loss: a convex surrogate of the Jaccard loss, a baseline of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from monai.utils import LossReduction
from torch.nn.modules.loss import _Loss

from ..ops.targets import plain_tensor
from ._targets import hard_target
from .by_case import LossOfMembers, is_batch_of_vmap

__all__ = ["LovaszSoftmaxLoss"]


class LovaszSoftmaxLoss(_Loss):
    """Lovász extension of the Jaccard loss, on the errors of the softmax probabilities, averaged over classes.

    For a class with foreground F, errors m_i = 1 - p_i on F and p_i elsewhere, sorted in decreasing order, the loss is
    sum_j m_j (J_j - J_{j-1}), J_j the Jaccard loss of predicting exactly the first j voxels wrongly. It is the Jaccard loss
    itself for probabilities of 0 and 1.

    Edge cases:

    * nothing valid, or none of the asked-for classes present: 0, with gradients of 0 and a live graph;
    * an absent class (only with ``classes="all"`` or when listed): the largest probability that any voxel gives it;
    * an ignored voxel changes nothing, whatever its logits.

    Shapes:
        * input: logits (B, N, *spatial), N classes, or N = 1: the logit of class 1 against class 0 at 0. No softmax before it.
        * target: class indices (B, 1, *spatial) or (B, *spatial) of any integer or integral floating dtype, or one-hot (B,
          N, *spatial).
        * output: scalar; for ``reduction="none"`` (B, 1, 1, ...) with ``per_image``, else (1, 1, 1, ...). float32, float64
          for float64.

    Source: Berman, Triki, Blaschko, "The Lovász-Softmax loss: A tractable surrogate for the optimization of the
    intersection-over-union measure in neural networks", CVPR 2018 (arXiv:1705.08790), Eq. 8, 11 and Algorithm 1.

    Example:
        >>> logits = torch.tensor([[[9.0, -9.0, 9.0], [-9.0, 9.0, -9.0]]])
        >>> labels = torch.tensor([[[0, 1, 1]]])  # the last voxel is wrong: both classes have IoU 1/2
        >>> print(f"{LovaszSoftmaxLoss()(logits, labels):.4f}")
        0.5000
    """

    def __init__(
        self,
        classes: Literal["present", "all"] | Sequence[int] = "present",
        per_image: bool = False,
        ignore_index: int | None = None,
        reduction: LossReduction | str = LossReduction.MEAN,
    ) -> None:
        """Keep the settings.

        Args:
            classes: over which classes to average: those "present" in the target, "all", or the listed ids.
            per_image: one loss per image, instead of one for all voxels of the batch.
            ignore_index: label of voxels that do not count.
            reduction: over images: "mean" (those without a valid voxel left out), "sum", or "none".

        Raises:
            ValueError: unknown ``classes`` or ``reduction``, an empty or repeated list.
        """
        super().__init__(reduction=LossReduction(reduction).value)
        if isinstance(classes, str):
            if classes not in ("present", "all"):
                raise ValueError(f"classes must be 'present', 'all' or a list of class ids, found {classes!r}")
        elif (
            not classes
            or len(set(classes)) != len(classes)
            or not all(type(one) is int and one >= 0 for one in classes)
        ):
            raise ValueError(
                f"classes must be 'present', 'all' or a list of distinct class ids >= 0, found {classes!r}"
            )
        self.classes = classes if isinstance(classes, str) else tuple(classes)
        self.per_image = per_image
        self.ignore_index = ignore_index

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Compute the loss.

        Args:
            input: logits (B, N, *spatial).
            target: class indices (B, 1, *spatial) or (B, *spatial), or one-hot (B, N, *spatial).

        Raises:
            ValueError: shapes do not fit; a label is undeclared or soft; a listed class is not among the channels.
        """
        input, target = plain_tensor(input), plain_tensor(target)
        if is_batch_of_vmap(input, target):
            return LossOfMembers.apply(input, target, self)[0]
        labels, valid = hard_target(input, target, self.ignore_index)
        num_classes = max(input.shape[1], 2)
        missing = [] if isinstance(self.classes, str) else [one for one in self.classes if one >= num_classes]
        if missing:
            raise ValueError(
                f"classes lists {missing}, input has the shape {tuple(input.shape)}: expected ids below {num_classes}"
            )
        # selected, not multiplied: NaN in an ignored voxel must not reach the gradient
        logits = torch.where(valid, input.to(torch.promote_types(input.dtype, torch.float32)), 0.0)
        if input.shape[1] == 1:
            logits = torch.cat([torch.zeros_like(logits), logits], dim=1)
        probabilities = torch.softmax(logits, dim=1)
        images = input.shape[0] if self.per_image else 1
        # (images, voxels, C) and (images, voxels)
        probabilities = probabilities.movedim(1, -1).reshape(images, -1, num_classes)
        labels, valid = labels.reshape(images, -1), valid.reshape(images, -1)
        losses = torch.stack([self._image(p[v], y[v]) for p, y, v in zip(probabilities, labels, valid, strict=True)])
        if self.reduction == "none":
            return losses.view(images, *(1,) * (input.ndim - 1))
        if self.reduction == "sum":
            return losses.sum()
        return losses.sum() / valid.any(dim=1).sum().clamp_min(1)

    def _image(self, probabilities: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Loss of voxels (V, C) with the labels (V,), averaged over the classes."""
        ids = range(probabilities.shape[1]) if isinstance(self.classes, str) else self.classes
        losses = []
        for one in ids:
            foreground = labels == one
            if labels.numel() == 0 or (self.classes == "present" and not bool(foreground.any())):
                continue
            losses.append(_lovasz(probabilities[:, one], foreground))
        # an empty sum that still hangs on the graph
        return torch.stack(losses).mean() if losses else probabilities.sum() * 0

    def extra_repr(self) -> str:
        """The settings."""
        settings = ("classes", "per_image", "ignore_index", "reduction")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in settings)


def _lovasz(probability: torch.Tensor, foreground: torch.Tensor) -> torch.Tensor:
    """Lovász extension of the Jaccard loss of one class at the errors of its probabilities (V,)."""
    errors = torch.where(foreground, 1 - probability, probability)
    # stable, so that equal errors give the same gradient every time
    errors, order = torch.sort(errors, descending=True, stable=True)
    return (errors * _jaccard_steps(foreground[order], errors.dtype)).sum()


def _jaccard_steps(foreground: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """By how much the Jaccard loss grows with each further voxel predicted wrongly, (V,).

    With I voxels of the intersection and U of the union left, a foreground voxel takes 1 from I: a step of 1/U. A
    background voxel adds 1 to U: a step of I / (U (U + 1)). Differences of the Jaccard losses themselves would cancel on
    large volumes.
    """
    size = foreground.sum()
    if int(size) == 0:  # absent: the first voxel predicted wrongly costs everything
        return torch.zeros(len(foreground), dtype=dtype, device=foreground.device).index_fill_(
            0, torch.zeros(1, dtype=torch.int64, device=foreground.device), 1.0
        )
    missed = torch.cumsum(foreground, dim=0)  # int64: exact beyond 2^24 voxels
    union = (size + torch.arange(1, len(foreground) + 1, device=foreground.device) - missed).to(dtype)
    left = (size - missed).to(dtype)
    return torch.where(foreground, 1 / union, left / (union * (union - 1).clamp_min(1)))
