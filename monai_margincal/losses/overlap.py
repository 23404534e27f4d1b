"""MONAI's Dice, Jaccard and Tversky losses of every case and class, averaged over those alone that were annotated.

MONAI's own modules average over every entry of the batch, so that a case, or a class of a case, that was not annotated counts
as a perfect one. They also ask a tensor for their axes, which compilers, `torch.export` and a default device "meta" cannot
answer. The sums are MONAI's all the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from monai.losses.utils import compute_tp_fp_fn

from .buffers import HoldsSettings

__all__ = ["OverlapLoss"]


class OverlapLoss(HoldsSettings):
    """One minus 2 TP / (2 TP + 2 alpha FP + 2 beta FN) of probabilities, per case and class.

    With alpha = beta = 1/2 it is the Dice loss, with 1 the Jaccard loss, else the Tversky loss.

    Args:
        alpha: weight of the false positives.
        beta: weight of the false negatives.
        smooth_nr: added to the numerator.
        smooth_dr: added to the denominator.
        factor: what both are multiplied by before they are smoothed: 2 in MONAI's Dice, 1 in its Tversky loss.
        squared_pred: squares of probabilities and labels in the denominator.
        soft_label: the formulation for soft labels.
        decoupled: see `monai.losses.utils.compute_tp_fp_fn`.
        batch: sum over the batch before dividing.
        weight: weight per class, or one for all.
        reduction: "mean" or "sum", over the cases and classes that count.

    Raises:
        ValueError: a weight is negative.

    Example:
        >>> dice = OverlapLoss(0.5, 0.5, smooth_nr=0.0, smooth_dr=0.0, factor=2.0)
        >>> probabilities = torch.tensor([[[1.0, 0.5]], [[0.0, 0.0]]])
        >>> labels = torch.tensor([[[1.0, 0.0]], [[0.0, 0.0]]])
        >>> dice(probabilities, labels, counted=torch.tensor([[True], [False]]))
        tensor(0.2000)
    """

    class_weight: torch.Tensor | None

    def __init__(
        self,
        alpha: float,
        beta: float,
        *,
        smooth_nr: float,
        smooth_dr: float,
        factor: float = 1.0,
        squared_pred: bool = False,
        soft_label: bool = False,
        decoupled: bool = True,
        batch: bool = False,
        weight: Sequence[float] | float | torch.Tensor | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.alpha = alpha
        self.beta = beta
        self.smooth_nr = float(smooth_nr)
        self.smooth_dr = float(smooth_dr)
        self.factor = factor
        self.order = 2 if squared_pred else 1
        self.soft_label = soft_label
        self.decoupled = decoupled
        self.batch = batch
        self.reduction = reduction
        if weight is None:
            self.register_buffer("class_weight", None)
        else:
            numbers = weight.tolist() if hasattr(weight, "tolist") else weight
            if not all(0 <= one < math.inf for one in (numbers if isinstance(numbers, Sequence) else [numbers])):
                raise ValueError(f"weight must be finite and >= 0, found {numbers!r}")
            self._hold("class_weight", numbers)

    def forward(self, probabilities: torch.Tensor, labels: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
        """Compute the loss.

        Args:
            probabilities: (B, C, *spatial), 0 wherever a voxel or a class does not count.
            labels: likewise, 0 or 1, or soft.
            counted: bool (B, C), which classes of which cases take part.

        Returns:
            a scalar, 0 where nothing counts.

        Raises:
            ValueError: the number of weights is not that of the classes.
        """
        axes = list(range(0 if self.batch else 2, probabilities.ndim))
        if self.batch:
            axes.remove(1)
            counted = counted.any(dim=0)
        hit, false, missed = compute_tp_fp_fn(
            probabilities, labels, axes, ord=self.order, soft_label=self.soft_label, decoupled=self.decoupled
        )
        union = hit + self.alpha * false + self.beta * missed
        losses = 1.0 - (self.factor * hit + self.smooth_nr) / (self.factor * union + self.smooth_dr)
        # as in MONAI, a single class is not weighted
        if self.class_weight is not None and probabilities.shape[1] != 1:
            if self.class_weight.ndim > 0 and self.class_weight.shape[0] != probabilities.shape[1]:
                raise ValueError(
                    f"weight: found {self.class_weight.shape[0]} entries, expected {probabilities.shape[1]}, one per class "
                    "(without the background if include_background=False)"
                )
            losses = losses * self.class_weight.to(losses)
        # selected, not multiplied: without smoothing, what does not count is 0/0
        total = torch.where(counted, losses, 0.0).sum()
        return total / counted.sum().clamp_min(1) if self.reduction == "mean" else total

    def extra_repr(self) -> str:
        """The settings."""
        names = ("alpha", "beta", "smooth_nr", "smooth_dr", "factor", "order", "soft_label", "batch", "reduction")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
