"""Choose one offset per class on validation cases, and keep only what helps on cases that it was not chosen on."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from tqdm import tqdm

from ..metrics import class_iou
from .case_votes import GRID, CaseVotes
from .class_offsets import ClassOffsets
from .votes import MOST_BYTES, AllVotes, Votes

__all__ = ["fit_class_offsets", "fit_votes"]

_ROUNDS = 2
_VALUES = [round(value, 1) for value in GRID.tolist()]
#: Scores closer than this are equal: sums of the same numbers in another order differ by less.
_EQUAL = 1e-12


def fit_class_offsets(
    cases: Iterable[tuple[torch.Tensor, torch.Tensor]],
    num_classes: int,
    score: Literal["iou", "dice"] = "iou",
    pooled: bool = True,
    ignore_index: int | None = None,
    folds: int = 5,
    class_names: Sequence[str] | None = None,
    progress: bool = True,
) -> ClassOffsets:
    """Fit offsets so that the mean score of the foreground classes becomes largest.

    Offsets from -4 to 4 in steps of 0.1 are tried, one class after the other, each class twice: for two classes that is exact.
    The gain is **cross-fitted** over the cases: offsets are chosen on all folds but one and scored on the one left out. An
    offset without which the cross-fitted score is not lower is left at 0, and so are all if together they gain nothing. So
    argmax never becomes worse on paper only. A class that no case has keeps 0.

    Each case is seen once, in slabs of 262,144 voxels. Kept of it are the logits, in single precision, of those voxels that
    some offsets can move: at most 2.5 GiB in all; where more would be needed, every second voxel is dropped until they fit, with
    a warning. Beside that and the case itself nothing grows with the size or the number of the cases.

    Args:
        cases: yields (logits, labels) per case: logits (C, ...) on any device, or (1, ...) for two classes (the logit of class
            1 against 0); labels are class indices (...) or (1, ...).
        num_classes: C, background included.
        score: "iou" or "dice".
        pooled: score of one confusion matrix over all cases, a class that occurs nowhere counting as 1; False: mean over the
            cases, classes that a case neither has nor is given left out.
        ignore_index: label of voxels that do not count.
        folds: parts for the cross-fit; with fewer cases every case is a part.
        class_names: what the classes are called, for the result.
        progress: show a progress bar; none is shown when standard error is not a terminal.

    Returns:
        `ClassOffsets`, whose ``fitted_on`` says: ``cases``, ``voxels``, ``score``, ``pooled``, ``folds``, ``before`` and
        ``after`` (score per class on these cases, None where it has none), ``confusion_before`` and ``confusion_after`` (pooled
        over the cases, rows are true classes), ``cross_fitted_gain`` (of the foreground mean, 0 or more) and ``software``.

    Raises:
        ValueError: there is no case, a case is no case of C classes, a label is no class; an argument is out of range.

    Warns:
        UserWarning: there is but one case, so that nothing can be cross-fitted and all offsets stay 0; or voxels were dropped.

    Source: for two classes and the pooled IoU, J at its largest, the best threshold is J / (1 + J), so below 1/2: from setting
    the derivative of the IoU with respect to adding one voxel to 0. docs/study has what offsets were worth on real data.

    Example:
        >>> logits = torch.tensor([[1.0, 1.0, 1.0, 1.0], [0.0, 0.7, 0.8, -3.0]])  # argmax never says class 1
        >>> labels = torch.tensor([0, 1, 1, 0])
        >>> offsets = fit_class_offsets([(logits, labels), (logits + 1, labels)], num_classes=2)
        >>> offsets
        ClassOffsets(0: +0, 1: +0.4)
        >>> offsets.fitted_on["before"], offsets.fitted_on["after"], offsets.fitted_on["cross_fitted_gain"]
        ([0.5, 0.0], [1.0, 1.0], 1.0)
    """
    _expect_options(num_classes, score, folds)
    votes = Votes(num_classes, ignore_index)
    for logits, labels in tqdm(cases, desc="looking at cases", unit="case", disable=None if progress else True):
        votes.add(logits, labels)
    found = AllVotes(votes)
    if len(found) == 0:
        raise ValueError("cases: found none, expected at least one")
    if len(found) == 1:
        warnings.warn(
            "found one case, expected two or more: the gain cannot be cross-fitted, all offsets stay 0", stacklevel=2
        )
    if found.weight > 1:
        warnings.warn(
            f"the offsets are chosen on one in {found.weight} of the voxels that they can move: all of them need more than "
            f"{MOST_BYTES / 2**30:g} GiB",
            stacklevel=2,
        )
    return fit_votes(found, score, pooled, folds=folds, class_names=class_names, progress=progress)


def fit_votes(
    cases: AllVotes,
    score: Literal["iou", "dice"] = "iou",
    pooled: bool = True,
    folds: int = 5,
    class_names: Sequence[str] | None = None,
    progress: bool = True,
    known: Mapping[str, Any] | None = None,
) -> ClassOffsets:
    """`fit_class_offsets`, for cases that have been looked at already; with several processes all of them must call it.

    Args:
        cases: one or more; with one all offsets stay 0.
        score: "iou" or "dice".
        pooled: as for `fit_class_offsets`.
        folds: parts for the cross-fit.
        class_names: what the classes are called.
        progress: show a progress bar.
        known: what else is known of the fit, in JSON types; put into ``fitted_on``.

    Returns:
        the same offsets on every process.
    """
    _expect_options(cases.num_classes, score, folds)
    goal, folds = _Goal(score, pooled), min(folds, len(cases))
    before = _matrices(cases, [0.0] * cases.num_classes)
    gain, free = _cross_fitted(cases, goal, before, folds=folds, progress=progress)
    offsets = _searched(cases, range(len(cases)), goal, free)
    after = _matrices(cases, offsets)
    from .. import __version__

    return ClassOffsets(
        offsets,
        class_names,
        {
            "cases": len(cases),
            "voxels": int(before.sum()),
            **({"one_in": cases.weight} if cases.weight > 1 else {}),
            "score": score,
            "pooled": pooled,
            "folds": folds,
            "before": goal.per_class(before),
            "after": goal.per_class(after),
            "confusion_before": before.sum(0).tolist(),
            "confusion_after": after.sum(0).tolist(),
            # on all cases together the best offsets may be 0 where those of the folds were not
            "cross_fitted_gain": gain if any(offsets) else 0.0,
            **(known or {}),
            "software": f"monai_margincal {__version__}",
        },
    )


def _expect_options(num_classes: int, score: str, folds: int) -> None:
    if num_classes < 2:
        raise ValueError(f"num_classes: found {num_classes}, expected 2 or more")
    if score not in ("iou", "dice"):
        raise ValueError(f"score: found {score!r}, expected 'iou' or 'dice'")
    if folds < 2:
        raise ValueError(f"folds: found {folds}, expected 2 or more")


class _Goal:
    """The score that is to become largest."""

    def __init__(self, score: str, pooled: bool) -> None:
        self.score = score
        self.pooled = pooled

    def __call__(self, confusions: np.ndarray) -> np.ndarray:
        """Foreground mean (...) of confusion matrices per case (N, ..., C, C)."""
        if self.pooled:
            return self._of(confusions.sum(0), absent=1.0)[..., 1:].mean(-1)
        per_class = self._of(confusions, absent=np.nan)[..., 1:]
        with warnings.catch_warnings():
            # a case without foreground in truth and prediction has no score
            warnings.simplefilter("ignore", RuntimeWarning)
            return np.nan_to_num(np.nanmean(np.nanmean(per_class, axis=-1), axis=0), nan=1.0)

    def per_class(self, confusions: np.ndarray) -> list[float | None]:
        """Score per class (C,) over the cases (N, C, C); None for a class that has none."""
        if self.pooled:
            values = self._of(confusions.sum(0), absent=np.nan)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                values = np.nanmean(self._of(confusions, absent=np.nan), axis=0)
        return [None if np.isnan(value) else float(value) for value in values]

    def _of(self, confusions: np.ndarray, absent: float) -> np.ndarray:
        iou = class_iou(confusions, absent=absent)
        return iou if self.score == "iou" else 2 * iou / (1 + iou)


def _matrices(cases: AllVotes, offsets: Sequence[float]) -> np.ndarray:
    """Confusion matrices of all cases (N, C, C)."""
    return cases.matrices(lambda _, case: case.confusion(offsets))


def _searched(cases: AllVotes, numbers: Sequence[int], goal: _Goal, free: Sequence[int]) -> list[float]:
    """Offsets for some of the cases, found class by class; those of classes that are not free stay 0."""
    offsets = [0.0] * cases.num_classes
    for _ in range(_ROUNDS if cases.num_classes > 2 else 1):
        for k in free:
            quality = goal(cases.matrices(lambda _, case, k=k: case.confusions(offsets, k), numbers))  # type: ignore[misc]
            best = np.flatnonzero(quality >= quality.max() - _EQUAL)
            # among equals the one nearest to where it was, which is 0 at first
            offsets[k] = min((_VALUES[place] for place in best), key=lambda value: abs(value - offsets[k]))
    return offsets


def _cross_fitted(
    cases: AllVotes, goal: _Goal, before: np.ndarray, folds: int, progress: bool
) -> tuple[float, list[int]]:
    """Gain on cases that the offsets were not chosen on, and the classes whose offsets contribute to it."""
    num_classes, numbers = cases.num_classes, range(len(cases))
    if len(cases) < 2:
        return 0.0, []
    # a class that no case has would be used as a place to put other classes' false positives
    every = [k for k in range(1, num_classes) if before[:, k].any()]
    fitted: list[list[float]] = []
    for fold in tqdm(range(folds), desc="cross-fitting", unit="fold", disable=None if progress else True):
        fitted.append(_searched(cases, [n for n in numbers if n % folds != fold], goal, every))
    plain = float(goal(before))

    def gain(classes: Sequence[int]) -> float:
        def left_out(number: int, case: CaseVotes) -> np.ndarray:
            return case.confusion([fitted[number % folds][k] if k in classes else 0.0 for k in range(num_classes)])

        return float(goal(cases.matrices(left_out))) - plain

    kept = [k for k in every if any(offsets[k] for offsets in fitted)]
    best = gain(kept)
    for k in list(kept):
        without = [other for other in kept if other != k]
        if (less := gain(without)) >= best - _EQUAL:
            kept, best = without, less
    return (best, kept) if best > _EQUAL else (0.0, [])
