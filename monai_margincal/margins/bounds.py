"""The lower bound of the IoU behind the loss, and the bound of its generalization error.

Three things in the printed paper need care, and are handled here:

* Eq. 6 bounds the error rates with "<"; it only holds with "<=".
* Step (15) to (16) of the proof needs a factor sqrt(C(Theta)) that is missing, step (12) needs b_k > eps_0k, and the minimum of
  Corollary 1.1 exists only where every denominator is positive. `generalization_bound` computes the printed formula.
* The printed bound is vacuous (a denominator <= 0) at the paper's own settings. `GeneralizationBound.is_vacuous` says so; a
  vacuous bound promises nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ..counting.as_class_counts import as_class_counts
from ..labels import class_labels
from ..ops.targets import holds_class_indices
from .class_margins import ClassMargins
from .surrogates import logit_margins, rho_margin_loss

__all__ = ["BoundTerms", "GeneralizationBound", "MeanIoUBound", "generalization_bound", "miou_lower_bound"]


@dataclass(frozen=True, eq=False)
class BoundTerms:
    """Sums over voxels from which the IoU lower bound follows; add the batches of a data set, then call `miou_lower_bound`.

    Args:
        voxels: voxels of every class, int64 (C,).
        false_negative: sum over the voxels of class k of phi_{rho_k0}(lambda_ik), float64 (C,): n times l_k0.
        false_positive: sum over all other voxels of phi_{rho_0k}(-lambda_ik), float64 (C,): n times l_0k.

    Source: arXiv:2011.01462, Eq. 6.
    """

    voxels: torch.Tensor
    false_negative: torch.Tensor
    false_positive: torch.Tensor

    @classmethod
    def from_logits(
        cls,
        logits: torch.Tensor,
        target: torch.Tensor,
        margins: ClassMargins,
        ignore_index: int | None = None,
        surrogate: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = rho_margin_loss,
    ) -> BoundTerms:
        """Compute the terms of one batch.

        Args:
            logits: (B, C, *spatial), C >= 2, floating point.
            target: class indices 0 ... C - 1, (B, *spatial) or (B, 1, *spatial), any integer dtype or whole numbers.
            margins: margin-offsets of the C classes.
            ignore_index: voxels with this label are left out.
            surrogate: loss of (margin, rho); the default is the one that the bound is stated for. With a larger one the bound is
                looser, with a smaller one it is none: `calibrated_log_loss` in base e is the smaller one for a rho below
                ln(e - 1) = 0.541 unless it is divided by ln 2.

        Raises:
            ValueError: shapes do not fit, or a label is not a whole number of 0 ... C - 1.
        """
        classes = logits.shape[1]
        if len(margins) != classes:
            raise ValueError(
                f"found margins of {len(margins)} classes for logits of {classes} channels: expected as many"
            )
        holds_class_indices(logits, target, only_indices=True)
        labels, valid = class_labels(target.flatten(), classes, ignore_index)
        by_voxel = logit_margins(logits.detach()).movedim(1, -1).reshape(-1, classes).to(torch.float64)
        if valid is not None:
            labels, by_voxel = labels[valid], by_voxel[valid]
        device = by_voxel.device
        is_class = labels[:, None] == torch.arange(classes, device=device)
        missed = surrogate(by_voxel, margins.positive.to(device))
        invented = surrogate(-by_voxel, margins.negative.to(device))
        return cls(
            torch.bincount(labels, minlength=classes).cpu(),
            torch.where(is_class, missed, 0.0).sum(0).cpu(),
            torch.where(is_class, 0.0, invented).sum(0).cpu(),
        )

    def __add__(self, other: object) -> BoundTerms:
        if not isinstance(other, BoundTerms):
            return NotImplemented
        return BoundTerms(
            self.voxels + other.voxels,
            self.false_negative + other.false_negative,
            self.false_positive + other.false_positive,
        )


@dataclass(frozen=True, eq=False)
class MeanIoUBound:
    """Lower bound of the empirical IoU: its mean over the classes, and per class, float64 (C,)."""

    value: float
    per_class: torch.Tensor


def miou_lower_bound(terms: BoundTerms) -> MeanIoUBound:
    """Lower bound of the IoU over the voxels that the terms were summed over.

    IoU_k >= (p_k - l_k0) / (p_k + l_0k), with p_k the share of class k. 0/0 is 1, as for the IoU itself: a class that is
    neither present nor ever close to being predicted. The mean is over all C classes, as printed.

    Args:
        terms: the sum of `BoundTerms` over a data set.

    Returns:
        the bound, never above the IoU of the arg-max prediction when the terms are of the rho-margin loss.

    Raises:
        ValueError: no voxel was counted.

    Source: arXiv:2011.01462, Eq. 7 and 8.

    Example:
        >>> logits = torch.tensor([[[4.0, 1.0, -2.0], [0.0, 0.0, 3.0]]])  # B=1, C=2, three voxels
        >>> margins = ClassMargins(negative=[2.0, 2.0], positive=[2.0, 2.0])
        >>> terms = BoundTerms.from_logits(logits, torch.tensor([[0, 0, 1]]), margins)
        >>> miou_lower_bound(terms).per_class
        tensor([0.7500, 0.6667], dtype=torch.float64)
    """
    if int(terms.voxels.sum()) == 0:
        raise ValueError("no voxel was counted: the IoU bound needs at least one that is not ignored")
    intersection = terms.voxels - terms.false_negative
    union = terms.voxels + terms.false_positive
    per_class = torch.where(union > 0, intersection / union, 1.0)
    return MeanIoUBound(float(per_class.mean()), per_class)


@dataclass(frozen=True, eq=False)
class GeneralizationBound:
    """Theorem 1: with probability >= 1 - eta, mIoU >= its empirical lower bound - value.

    Attributes:
        value: eps, the mean of `per_class`; infinite where a denominator is not positive.
        per_class: eps_k, float64 (C,); infinite where its denominator is not positive (the theorem then says nothing).
        denominators: n_k rho_0k / (4 c F) - sqrt(n - n_k), float64 (C,).
        is_vacuous: the bound promises nothing: eps >= 1, so "mIoU >= at most 0".
    """

    value: float
    per_class: torch.Tensor
    denominators: torch.Tensor
    is_vacuous: bool


def generalization_bound(
    counts: Any, margins: ClassMargins, complexity: float, pixels_per_image: int, eta: float = 0.05
) -> GeneralizationBound:
    """The generalization error bound of Theorem 1, as printed::

        eps = (1/c) sum_k (sqrt(n - n_k) + sqrt(n_k) / mu_k) / (n_k rho_0k / (4 c F) - sqrt(n - n_k))
        F   = C(Theta) + (rho_max / (4 c)) sqrt(2 m log(2 c / eta))

    Args:
        counts: class counts of the training set, in any form that `monai_margincal.counting.as_class_counts` takes.
        margins: margin-offsets of the same classes; mu_k = rho_k0 / rho_0k.
        complexity: C(Theta) >= 0, the complexity of the network. The paper gives no way to compute it.
        pixels_per_image: m >= 1.
        eta: the bound holds with probability 1 - eta, 0 < eta < 1.

    Returns:
        the bound; look at ``is_vacuous`` before its value. At the paper's own settings it is vacuous.

    Raises:
        ValueError: an argument is outside its range, or counts and margins are of different classes.

    Source: arXiv:2011.01462, Theorem 1.

    Example:
        >>> from monai_margincal.margins import class_margins
        >>> counts = [225_400_000, 4_600_000]
        >>> bound = generalization_bound(counts, class_margins(counts, tau=10), complexity=1.0, pixels_per_image=224 * 336)
        >>> bound.is_vacuous, bound.value
        (True, inf)
    """
    found = as_class_counts(counts)
    classes, total = len(found), found.total
    if len(margins) != classes:
        raise ValueError(f"found margins of {len(margins)} classes and counts of {classes}: expected the same classes")
    if margins.ids is not None and margins.ids != found.ids:
        raise ValueError(f"margins are of the ids {list(margins.ids)}, counts of {list(found.ids)}: expected the same")
    if not math.isfinite(complexity) or complexity < 0:
        raise ValueError(f"complexity must be finite and >= 0, found {complexity!r}")
    if pixels_per_image < 1:
        raise ValueError(f"pixels_per_image must be >= 1, found {pixels_per_image!r}")
    if not 0 < eta < 1:
        raise ValueError(f"eta must be in (0, 1), found {eta!r}")
    if total == 0:
        raise ValueError(f"nothing was counted, so there is no bound: {found!r}")

    largest = float(torch.cat([margins.negative, margins.positive]).max())
    capacity = complexity + largest / (4 * classes) * math.sqrt(2 * pixels_per_image * math.log(2 * classes / eta))
    denominators = torch.empty(classes, dtype=torch.float64, device="cpu")
    per_class = torch.full((classes,), math.inf, dtype=torch.float64, device="cpu")
    terms = zip(found.counts.tolist(), margins.negative.tolist(), margins.positive.tolist(), strict=True)
    for k, (count, negative, positive) in enumerate(terms):
        others = math.sqrt(total - count)
        # F = 0 only for margins of 0 and a network of no complexity: 0/0 promises nothing
        denominator = count * negative / (4 * classes * capacity) - others if capacity > 0 else -others
        denominators[k] = denominator
        if denominator > 0 and positive > 0:
            per_class[k] = (others + math.sqrt(count) * negative / positive) / denominator
    value = float(per_class.mean())
    return GeneralizationBound(value, per_class, denominators, not value < 1)
