"""Scores of a study, and how sure one can be of a difference.

Scores are those of the paper: IoU, recall and precision of `monai_margincal.metrics` from ONE confusion matrix over a whole set,
0/0 = 1, means over the foreground classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..metrics import class_iou

__all__ = [
    "Comparison",
    "PAPER_ABSENT",
    "foreground_iou",
    "foreground_mean",
    "paired_comparison",
    "seed_interval",
    "signed_points",
]

#: The value of 0/0 in the paper's tables, and so in all scores of a study.
PAPER_ABSENT = 1.0

Array = npt.NDArray[np.float64]


def foreground_iou(matrices: np.ndarray) -> Array:
    """Mean IoU over all classes except 0, (...), of confusion matrices (..., C, C); a class seen nowhere counts as 1.

    Example:
        >>> foreground_iou(np.array([[8, 2, 0], [0, 10, 0], [0, 0, 0]])).round(4)
        np.float64(0.9167)
    """
    return foreground_mean(class_iou(matrices, absent=PAPER_ABSENT))


def foreground_mean(per_class: np.ndarray) -> Array:
    """Mean over all classes except 0, (...)."""
    return per_class[..., 1:].mean(-1)


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
    computed anew from the summed confusion matrices of every draw, so that large and small cases keep their weights. With a
    single seed, only cases are drawn, and the interval says nothing about training noise.

    Args:
        ours: confusion matrices (S, N, C, C) of S seeds and N cases.
        theirs: those of the other objective, same seeds and cases in the same order.
        resamples: number of draws.
        level: level of the percentile interval.
        tolerance: differences in a seed of up to this much count as a tie.
        seed: seed of the draws.

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
    by_seed = foreground_iou(ours.sum(1)) - foreground_iou(theirs.sum(1))
    by_case = foreground_iou(ours) - foreground_iou(theirs)
    generator = np.random.RandomState(seed)
    case_weights = generator.multinomial(cases, np.full(cases, 1 / cases), size=resamples).astype(np.float64)
    seed_weights = generator.multinomial(seeds, np.full(seeds, 1 / seeds), size=resamples) / seeds

    def drawn(matrices: np.ndarray) -> Array:
        flat = matrices.reshape(seeds, cases, -1).astype(np.float64)
        sums = np.einsum("bn,snk->bsk", case_weights, flat).reshape(resamples, seeds, classes, classes)
        return (foreground_iou(sums) * seed_weights).sum(1)

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


def seed_interval(
    differences: np.ndarray, resamples: int = 2000, level: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Bootstrap interval of a mean over seeds, for results whose test cases are not known.

    Args:
        differences: one per seed (S,).
        resamples: number of draws.
        level: level of the percentile interval.
        seed: seed of the draws.

    Returns:
        lower and upper end; NaN for a single seed, which says nothing about the others.

    Example:
        >>> low, high = seed_interval(np.array([0.01, 0.02, 0.03]))
        >>> round(low, 3), round(high, 3)
        (0.01, 0.03)
    """
    if len(differences) < 2:
        return float("nan"), float("nan")
    drawn = np.random.RandomState(seed).choice(differences, size=(resamples, len(differences))).mean(1)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def signed_points(difference: float) -> str:
    """The difference between two fractions of 1, in points, with its sign.

    Example:
        >>> signed_points(-0.0034)
        '−0.34'
    """
    return f"{100 * difference:+.2f}".replace("-", "−")
