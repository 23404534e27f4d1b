"""Choose one offset per class on validation cases, and keep only what helps on cases that it was not chosen on."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import torch
from tqdm import tqdm

from .class_offsets import ClassOffsets
from .cross_fit import cross_fit, matrices, searched
from .goal import Goal
from .votes import MOST_BYTES, AllVotes, Votes

__all__ = ["fit_class_offsets", "fit_votes"]


def fit_class_offsets(
    cases: Iterable[tuple[torch.Tensor, torch.Tensor]],
    num_classes: int,
    score: Literal["iou", "dice"] = "iou",
    pooled: bool = True,
    ignore_index: int | None = None,
    folds: int = 5,
    class_names: Sequence[str] | None = None,
    progress: bool = True,
    groups: Sequence[str] | None = None,
) -> ClassOffsets:
    """Fit offsets so that the mean score of the foreground classes becomes largest.

    Offsets from -4 to 4 in steps of 0.1 are tried, one class after the other, each class twice: for two classes that is exact.
    The gain is **cross-fitted** over the cases: offsets are chosen on all folds but one and scored on the one left out. An
    offset without which the cross-fitted score is not lower is left at 0, and so are all whose gain is not clear of chance: more
    than two standard errors (jackknife over the cases). Few or unlike cases therefore keep argmax. A class that no case has
    keeps 0.

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
        groups: which cases belong together, such as those of a patient: one name per case, in their order. A group stays in one
            fold, and the standard error counts groups.

    Returns:
        `ClassOffsets`, whose ``fitted_on`` says: ``cases``, ``voxels``, ``score``, ``pooled``, ``folds``, ``before`` and
        ``after`` (score per class on these cases, None where it has none), ``confusion_before`` and ``confusion_after`` (pooled
        over the cases, rows are true classes), ``cross_fitted_gain`` (of the foreground mean; 0 where argmax is kept), its
        ``standard_error`` and ``software``; where there are groups of several cases, their number ``groups``; where a gain was
        not clear of chance, that ``gain`` and its ``standard_error`` under ``unclear``.

    Raises:
        ValueError: there is no case, a case is no case of C classes, a label is no class; an argument is out of range; another
            number of groups than of cases.

    Warns:
        UserWarning: there is but one case or one group, so that nothing can be cross-fitted and all offsets stay 0; or voxels
            were dropped.

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
        number = len(votes.cases)
        group = "" if groups is None or number >= len(groups) else groups[number]
        votes.add(logits, labels, group=group)
    found = AllVotes(votes)
    if len(found) == 0:
        raise ValueError("cases: found none, expected at least one")
    if groups is not None and len(groups) != len(found):
        raise ValueError(f"groups: found {len(groups)}, expected one for each of the {len(found)} cases")
    if found.num_groups == 1:
        what = "case" if len(found) == 1 else "group of cases"
        warnings.warn(
            f"found one {what}, expected two or more: the gain cannot be cross-fitted, all offsets stay 0", stacklevel=2
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
        cases: one or more; with one, or one group, all offsets stay 0.
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
    goal, folds = Goal(score, pooled), min(folds, cases.num_groups)
    before = matrices(cases, [0.0] * cases.num_classes)
    found = cross_fit(cases, goal, before, folds=folds, progress=progress)
    offsets = searched(cases, range(len(cases)), goal, found.classes)
    after = matrices(cases, offsets)
    # on all cases together the best offsets may be 0 where those of the folds were not
    gain, error = (found.gain, found.error) if any(offsets) else (0.0, 0.0)
    unclear = {"gain": found.gain, "standard_error": found.error} if found.gain and not found.classes else None
    from .. import __version__

    return ClassOffsets(
        offsets,
        class_names,
        {
            "cases": len(cases),
            **({"groups": cases.num_groups} if cases.num_groups < len(cases) else {}),
            "voxels": int(before.sum()),
            **({"one_in": cases.weight} if cases.weight > 1 else {}),
            "score": score,
            "pooled": pooled,
            "folds": folds,
            "before": goal.per_class(before),
            "after": goal.per_class(after),
            "confusion_before": before.sum(0).tolist(),
            "confusion_after": after.sum(0).tolist(),
            "cross_fitted_gain": gain,
            "standard_error": error,
            **({} if unclear is None else {"unclear": unclear}),
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
