"""What an overlap loss (Dice, Jaccard, Tversky) needs of one block of voxels: three sums per case and class, and the way back.

With p the softmax of the logits and y the labels, both 0 wherever a voxel does not count, the sums over the voxels of a case are

    hits         sum of p y         (for soft labels on request: of min(p, y))
    predicted    sum of p           (squared: of p^2)
    labelled     sum of y           (squared: of y^2)

Every overlap loss is a function of them. Given its derivatives h with respect to the hits and q with respect to the predicted
sum, that with respect to a probability is d = h y + q (squared: h y + 2 q p), so with respect to a logit it is

    p_k (d_k - sum_j p_j d_j)

and the backward pass needs two numbers per case and class, and nothing of the size of the logits.

The minimum stands for MONAI's formulation for soft labels, (|p| + |y| - |p - y|) / 2 in the 1-norm, which is the same number; it
is as steep as MONAI's where p = y, namely half way between both sides.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

__all__ = ["OverlapForm", "overlap_gradient", "overlap_sums"]


class OverlapForm(NamedTuple):
    """Which sums are wanted; ``minimum`` matters for labels with one value per class alone."""

    squared: bool = False
    minimum: bool = False


def overlap_sums(
    probabilities: torch.Tensor,
    labels: torch.Tensor,
    valid: torch.Tensor | None,
    form: OverlapForm,
    *,
    holds_indices: bool,
) -> torch.Tensor:
    """Hits, predicted and labelled sums of a block.

    Args:
        probabilities: (b, C, L), float32 or float64; set to 0 in voxels that do not count.
        labels: class indices (b, 1, L), or one value per class (b, C, L).
        valid: bool (b, 1, L), or None where all voxels count.
        form: see there.
        holds_indices: which of the two ``labels`` are.

    Returns:
        (b, 3, C), float64.
    """
    if valid is not None:
        probabilities.masked_fill_(~valid, 0)
    predicted = probabilities.square().sum(dim=2) if form.squared else probabilities.sum(dim=2)
    if holds_indices and probabilities.device.type == "cpu":
        hits, labelled = _by_label(probabilities, labels, valid)
    else:
        shares = _one_value_per_class(probabilities, labels, valid, holds_indices)
        labelled = (shares.square() if form.squared else shares).sum(dim=2, dtype=torch.float64)
        of_both = torch.minimum(probabilities, shares) if form.minimum else probabilities * shares
        hits = of_both.sum(dim=2)
    return torch.stack([hits.double(), predicted.double(), labelled.double()], dim=1)


def _by_label(
    probabilities: torch.Tensor, labels: torch.Tensor, valid: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Hits and number of voxels of every class, (b, C), from class indices and without a one-hot copy of them."""
    cases, classes = probabilities.shape[:2]
    bins = labels
    if cases > 1:
        bins = labels + classes * torch.arange(cases, device=labels.device).view(-1, 1, 1)
    bins = bins.flatten()
    # bincount adds up in the dtype of the weights, one after the other
    hits = torch.bincount(bins, probabilities.gather(1, labels).flatten().double(), minlength=cases * classes)
    weights = None if valid is None else valid.flatten().double()
    labelled = torch.bincount(bins, weights, minlength=cases * classes)
    return hits.view(cases, classes), labelled.view(cases, classes)


def _one_value_per_class(
    probabilities: torch.Tensor, labels: torch.Tensor, valid: torch.Tensor | None, holds_indices: bool
) -> torch.Tensor:
    if holds_indices:
        shares = torch.zeros_like(probabilities).scatter_(1, labels, 1)
    else:
        shares = labels.to(probabilities.dtype)
    return shares if valid is None else shares.masked_fill(~valid, 0)


def overlap_gradient(
    probabilities: torch.Tensor,
    labels: torch.Tensor,
    valid: torch.Tensor | None,
    form: OverlapForm,
    *,
    holds_indices: bool,
    slopes: torch.Tensor,
) -> torch.Tensor:
    """Gradient of the logits of a block.

    Args:
        probabilities: as for `overlap_sums`.
        labels: likewise.
        valid: likewise.
        form: likewise.
        holds_indices: likewise.
        slopes: derivatives with respect to hits and predicted sums, (b, 2, C).

    Returns:
        (b, C, L), in the dtype of the probabilities.
    """
    of_hits, of_predicted = slopes.to(probabilities.dtype).unbind(dim=1)
    if valid is not None:
        probabilities.masked_fill_(~valid, 0)
    if holds_indices:
        if form.squared:
            gradient = probabilities.square().mul_(2 * of_predicted[:, :, None])
            inner = gradient.sum(dim=1, keepdim=True)
        else:
            inner = torch.matmul(of_predicted[:, None], probabilities)
            gradient = probabilities * of_predicted[:, :, None]
        of_true = _slope_of_label(of_hits, labels).mul_(probabilities.gather(1, labels))
        gradient.addcmul_(probabilities, inner.add_(of_true), value=-1).scatter_add_(1, labels, of_true)
    else:
        shares = _one_value_per_class(probabilities, labels, valid, holds_indices)
        if form.minimum:
            below, equal = probabilities < shares, probabilities == shares
            shares = below.to(probabilities.dtype).add_(equal, alpha=0.5)
        gradient = shares.mul(of_hits[:, :, None])
        predicted = 2 * probabilities * of_predicted[:, :, None] if form.squared else of_predicted[:, :, None]
        gradient.add_(predicted).mul_(probabilities)
        gradient.addcmul_(probabilities, gradient.sum(dim=1, keepdim=True), value=-1)
    # 0 times an infinite slope
    return gradient if valid is None else gradient.masked_fill_(~valid, 0)


def _slope_of_label(of_hits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    if of_hits.shape[0] == 1:
        return of_hits[0].index_select(0, labels.flatten()).view(labels.shape)
    return of_hits.gather(1, labels.flatten(1)).view(labels.shape)
