"""MONAI's Dice, Jaccard and Tversky losses of every case and class, averaged over those alone that were annotated.

MONAI's own modules average over every entry of the batch, so that a case, or a class of a case, that was not annotated counts
as a perfect one, and they keep several tensors of the size of the logits. The formulas are MONAI's, of sums that
`monai_margincal.ops.margin_overlap` takes from the logits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from .buffers import HoldsSettings

__all__ = ["OverlapLoss"]


class OverlapLoss(HoldsSettings):
    """One minus TP / (TP + alpha FP + beta FN) of probabilities, per case and class.

    With alpha = beta = 1/2 it is the Dice loss, with 1 the Jaccard loss, else the Tversky loss.

    Args:
        alpha: weight of the false positives.
        beta: weight of the false negatives.
        smooth_nr: added to the numerator.
        smooth_dr: added to the denominator.
        factor: what both are multiplied by before they are smoothed: 2 in MONAI's Dice, 1 in its Tversky loss.
        squared_pred: squares of probabilities and labels in the denominator.
        soft_label: the formulation for soft labels; the sums must be those that go with it.
        batch: sum over the batch before dividing.
        weight: weight per class, or one for all.
        reduction: "mean" or "sum", over the cases and classes that count.

    Raises:
        ValueError: a weight is negative.

    Example:
        >>> dice = OverlapLoss(0.5, 0.5, smooth_nr=0.0, smooth_dr=0.0, factor=2.0)
        >>> sums = torch.tensor([[[1.0], [1.5], [1.0]], [[0.0], [0.0], [0.0]]])  # hits, probabilities, labels of two cases
        >>> dice(sums, counted=torch.tensor([[True], [False]]))
        tensor(0.2000)
    """

    if TYPE_CHECKING:  # TorchScript reads annotations of classes, but not this one
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
        batch: bool = False,
        weight: Sequence[float] | float | torch.Tensor | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.alpha = float(alpha)
        self.beta = float(beta)
        self.smooth_nr = float(smooth_nr)
        self.smooth_dr = float(smooth_dr)
        self.factor = factor
        self.order = 2 if squared_pred else 1
        self.soft_label = soft_label
        self.batch = batch
        self.reduction = reduction
        if weight is None:
            self.register_buffer("class_weight", None)
        else:
            numbers = weight.tolist() if hasattr(weight, "tolist") else weight
            if not all(0 <= one < math.inf for one in (numbers if isinstance(numbers, Sequence) else [numbers])):
                raise ValueError(f"weight must be finite and >= 0, found {numbers!r}")
            self._hold("class_weight", numbers)

    def forward(self, sums: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
        """Compute the loss.

        Args:
            sums: (B, 3, C), over the voxels that count: probability times label, probabilities, labels (with ``squared_pred``
                their squares). `monai_margincal.ops.margin_overlap` has them.
            counted: bool (B, C), which classes of which cases take part.

        Returns:
            a scalar, 0 where nothing counts.

        Raises:
            ValueError: the number of weights is not that of the classes.
        """
        if self.batch:
            sums, counted = sums.sum(dim=0, keepdim=True), counted.any(dim=0, keepdim=True)
        hit, predicted, labelled = sums[:, 0], sums[:, 1], sums[:, 2]
        union = hit + self.alpha * (predicted - hit) + self.beta * (labelled - hit)
        losses = 1.0 - (self.factor * hit + self.smooth_nr) / (self.factor * union + self.smooth_dr)
        # as in MONAI, a single class is not weighted
        weight = self.class_weight
        if weight is not None and sums.shape[2] != 1:
            if weight.ndim > 0 and weight.shape[0] != sums.shape[2]:
                raise ValueError(
                    f"weight: found {weight.shape[0]} entries, expected {sums.shape[2]}, one per class "
                    "(without the background if include_background=False)"
                )
            losses = losses * weight.to(losses)
        # selected, not multiplied: without smoothing, what does not count is 0/0
        total = torch.where(counted, losses, torch.zeros_like(losses)).sum()
        return total / counted.sum().clamp_min(1) if self.reduction == "mean" else total

    def extra_repr(self) -> str:
        """The settings."""
        names = ("alpha", "beta", "smooth_nr", "smooth_dr", "factor", "order", "soft_label", "batch", "reduction")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
