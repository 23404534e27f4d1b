"""Scores of confusion matrices, and how sure one can be of a difference.

A confusion matrix has the true classes as rows and the predicted ones as columns. Arrays of them have shape (..., C, C). Scores
are those of the paper: IoU, recall and precision from ONE matrix over a whole set, 0/0 = 1, means over the foreground classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = [
    "Comparison",
    "confusion_matrix",
    "foreground_mean",
    "iou",
    "paired_comparison",
    "precision",
    "recall",
    "signed_points",
]

Array = npt.NDArray[np.float64]


def confusion_matrix(truth: np.ndarray, prediction: np.ndarray, num_classes: int) -> npt.NDArray[np.int64]:
    """Voxels of every true class (rows) by predicted class (columns), int64 (C, C).

    Args:
        truth: class indices 0 ... C - 1, any shape.
        prediction: class indices 0 ... C - 1, the same shape.
        num_classes: C.

    Example:
        >>> confusion_matrix(np.array([0, 0, 1]), np.array([0, 1, 1]), 2)
        array([[1, 1],
               [0, 1]])
    """
    cells = truth.astype(np.int64).ravel() * num_classes + prediction.ravel()
    return np.bincount(cells, minlength=num_classes**2).reshape(num_classes, num_classes).astype(np.int64)


def iou(confusion: np.ndarray) -> Array:
    """IoU per class, (..., C); 0/0 is 1.

    Example:
        >>> iou(np.array([[1, 1], [0, 1]]))
        array([0.5, 0.5])
    """
    hit = np.diagonal(confusion, axis1=-2, axis2=-1)
    return _ratio(hit, confusion.sum(-1) + confusion.sum(-2) - hit)


def recall(confusion: np.ndarray) -> Array:
    """Recall per class, (..., C): what the paper's tables call pixel accuracy; 0/0 is 1.

    Example:
        >>> recall(np.array([[1, 1], [0, 1]]))
        array([0.5, 1. ])
    """
    return _ratio(np.diagonal(confusion, axis1=-2, axis2=-1), confusion.sum(-1))


def precision(confusion: np.ndarray) -> Array:
    """Precision per class, (..., C); 0/0 is 1.

    Example:
        >>> precision(np.array([[1, 1], [0, 1]]))
        array([1. , 0.5])
    """
    return _ratio(np.diagonal(confusion, axis1=-2, axis2=-1), confusion.sum(-2))


def foreground_mean(per_class: np.ndarray) -> Array:
    """Mean over the classes but class 0, (...)."""
    return per_class[..., 1:].mean(-1)


def _ratio(part: np.ndarray, whole: np.ndarray) -> Array:
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1), 1.0)


@dataclass(frozen=True)
class Comparison:
    """Difference of the foreground mean IoU of two objectives over the same seeds and cases.

    Attributes:
        difference: mean over the seeds.
        low: lower end of the bootstrap interval.
        high: upper end.
        wins: seeds in which the first objective is better by more than the tolerance.
        ties: seeds within the tolerance.
        losses: seeds in which it is worse by more.
        case_wins: share of the cases (mean over the seeds) whose own mean IoU is better.
    """

    difference: float
    low: float
    high: float
    wins: int
    ties: int
    losses: int
    case_wins: float


def paired_comparison(
    ours: np.ndarray,
    theirs: np.ndarray,
    resamples: int = 2000,
    level: float = 0.95,
    tolerance: float = 0.001,
    seed: int = 0,
) -> Comparison:
    """Compare two objectives, with a bootstrap interval over seeds and cases.

    Seeds and cases are drawn independently, with replacement; both objectives see the same draws. The whole-set score is
    computed afresh from the summed confusion matrices of every draw, so that large and small cases keep their weight. With one
    seed only the cases are drawn: the interval then says nothing about training noise.

    Args:
        ours: confusion matrices (S, N, C, C) of S seeds and N cases.
        theirs: those of the other objective, same seeds and cases in the same order.
        resamples: number of draws.
        level: of the percentile interval.
        tolerance: differences of one seed up to this count as a tie.
        seed: of the draws.

    Raises:
        ValueError: the shapes differ, or are not (S, N, C, C) with at least one seed and case.

    Example:
        >>> good = np.tile(np.array([[90, 2], [1, 7]]), (3, 5, 1, 1))
        >>> bad = np.tile(np.array([[88, 4], [2, 6]]), (3, 5, 1, 1))
        >>> comparison = paired_comparison(good, bad)
        >>> round(comparison.difference, 3), comparison.wins, comparison.case_wins
        (0.2, 3, 1.0)
    """
    if ours.shape != theirs.shape or ours.ndim != 4 or 0 in ours.shape or ours.shape[2] != ours.shape[3]:
        raise ValueError(
            f"found confusion matrices of the shapes {ours.shape} and {theirs.shape}: expected (seeds, cases, C, C) twice"
        )
    seeds, cases, classes = ours.shape[:3]
    by_seed = foreground_mean(iou(ours.sum(1))) - foreground_mean(iou(theirs.sum(1)))
    by_case = foreground_mean(iou(ours)) - foreground_mean(iou(theirs))
    generator = np.random.RandomState(seed)
    case_weights = generator.multinomial(cases, np.full(cases, 1 / cases), size=resamples).astype(np.float64)
    seed_weights = generator.multinomial(seeds, np.full(seeds, 1 / seeds), size=resamples) / seeds

    def drawn(matrices: np.ndarray) -> Array:
        flat = matrices.reshape(seeds, cases, -1).astype(np.float64)
        sums = np.einsum("bn,snk->bsk", case_weights, flat).reshape(resamples, seeds, classes, classes)
        return (foreground_mean(iou(sums)) * seed_weights).sum(1)

    low, high = np.quantile(drawn(ours) - drawn(theirs), [(1 - level) / 2, (1 + level) / 2])
    return Comparison(
        difference=float(by_seed.mean()),
        low=float(low),
        high=float(high),
        wins=int((by_seed > tolerance).sum()),
        ties=int((np.abs(by_seed) <= tolerance).sum()),
        losses=int((by_seed < -tolerance).sum()),
        case_wins=float((by_case > 0).mean()),
    )


def signed_points(difference: float) -> str:
    """A difference of two shares of 1 in points, with its sign.

    Example:
        >>> signed_points(-0.0034)
        '−0.34'
    """
    return f"{100 * difference:+.2f}".replace("-", "−")
