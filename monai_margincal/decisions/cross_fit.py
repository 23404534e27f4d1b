"""What offsets gain on cases that they were not chosen on, and whether that is clear of chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tqdm import tqdm

from .case_votes import GRID, CaseVotes
from .goal import Goal
from .votes import AllVotes

__all__ = ["CrossFit", "cross_fit", "jackknife_error", "matrices", "searched"]

_ROUNDS = 2
_VALUES = [round(value, 1) for value in GRID.tolist()]
#: Scores closer than this are equal: sums of the same numbers in another order differ by less.
_EQUAL = 1e-12
#: A gain counts from so many of its standard errors on: by chance alone it does so once in about 40 fits.
_ERRORS = 2.0


@dataclass(frozen=True)
class CrossFit:
    """The classes whose offsets are worth keeping, and what those gain on cases that they were not chosen on.

    Attributes:
        classes: in rising order; none where the gain is not clear of chance.
        gain: of the foreground mean; where there are no classes that of all offsets that gained something, 0 if none did.
        error: standard error of the gain over the groups of cases.
    """

    classes: tuple[int, ...] = ()
    gain: float = 0.0
    error: float = 0.0


def cross_fit(cases: AllVotes, goal: Goal, before: np.ndarray, folds: int, progress: bool) -> CrossFit:
    """Choose offsets on all folds but one, score them on that one, and keep what gains more than two standard errors.

    Cases of a group are in one fold. First an offset without which the gain is not smaller is given up; then, as long as the
    gain of all that are left is within two standard errors of 0, the one whose own share is the least clear of chance.

    Args:
        cases: of all processes, which must call this together.
        goal: the score.
        before: confusion matrices (N, C, C) without offsets.
        folds: parts of the groups.
        progress: show a progress bar.

    Returns:
        the same on every process; without classes for fewer than two groups.
    """
    if cases.num_groups < 2:
        return CrossFit()
    parts = [group % folds for group in cases.groups]
    # a class that no case has would be used as a place to put other classes' false positives
    every = [k for k in range(1, cases.num_classes) if before[:, k].any()]
    chosen: list[list[float]] = []
    for fold in tqdm(range(folds), desc="cross-fitting", unit="fold", disable=None if progress else True):
        chosen.append(searched(cases, [n for n, part in enumerate(parts) if part != fold], goal, every))

    def left_out(classes: Sequence[int]) -> np.ndarray:
        def of_case(number: int, case: CaseVotes) -> np.ndarray:
            values = chosen[parts[number]]
            return case.confusion([value if k in classes else 0.0 for k, value in enumerate(values)])

        return cases.matrices(of_case)

    plain = float(goal(before))
    kept = [k for k in every if any(offsets[k] for offsets in chosen)]
    after = left_out(kept)
    gain = float(goal(after)) - plain
    for k in list(kept):
        fewer = [other for other in kept if other != k]
        without = left_out(fewer)
        if (less := float(goal(without)) - plain) >= gain - _EQUAL:
            kept, gain, after = fewer, less, without
    if not kept or gain <= _EQUAL:
        return CrossFit()
    error = jackknife_error(goal, before, after, cases.groups)
    unclear = CrossFit((), gain, error)
    while gain <= max(_ERRORS * error, _EQUAL):
        if len(kept) == 1:
            return unclear
        shares = []
        for k in kept:
            without = left_out([other for other in kept if other != k])
            share = float(goal(after)) - float(goal(without))
            shares.append((share / max(jackknife_error(goal, without, after, cases.groups), _EQUAL), k))
        kept = [k for k in kept if k != min(shares)[1]]
        after = left_out(kept)
        gain = float(goal(after)) - plain
        error = jackknife_error(goal, before, after, cases.groups)
    return CrossFit(tuple(kept), gain, error)


def jackknife_error(goal: Goal, before: np.ndarray, after: np.ndarray, groups: Sequence[int]) -> float:
    """Standard error of what a score gains from ``before`` to ``after``, from leaving out one group of cases after the other.

    Args:
        goal: the score.
        before: confusion matrices of the cases (N, C, C).
        after: those of the same cases, decided otherwise.
        groups: the group of every case (N,), two different ones or more.

    Source: Efron, Stein, "The jackknife estimate of variance", The Annals of Statistics 9(3):586-596, 1981.
    """
    number = np.asarray(groups)
    names = np.unique(number)
    gains = np.array([goal(after[number != one]) - goal(before[number != one]) for one in names])
    return float(np.sqrt((len(names) - 1) / len(names) * ((gains - gains.mean()) ** 2).sum()))


def matrices(cases: AllVotes, offsets: Sequence[float]) -> np.ndarray:
    """Confusion matrices of all cases (N, C, C)."""
    return cases.matrices(lambda _, case: case.confusion(offsets))


def searched(cases: AllVotes, numbers: Sequence[int], goal: Goal, free: Sequence[int]) -> list[float]:
    """Offsets for some of the cases, found class by class; those of classes that are not free stay 0."""
    offsets = [0.0] * cases.num_classes
    for _ in range(_ROUNDS if cases.num_classes > 2 else 1):
        for k in free:
            quality = goal(cases.matrices(lambda _, case, k=k: case.confusions(offsets, k), numbers))  # type: ignore[misc]
            best = np.flatnonzero(quality >= quality.max() - _EQUAL)
            # among equals the one nearest to where it was, which is 0 at first
            offsets[k] = min((_VALUES[place] for place in best), key=lambda value: abs(value - offsets[k]))
    return offsets
