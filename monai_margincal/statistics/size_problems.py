"""Cases and classes whose size alone decides the statistics, found from the counts."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping

import numpy as np

from ..counting.class_counts import ClassCounts
from ..findings import Finding

#: A case is a size outlier if it holds more than this share of a class's voxels ...
_MOST = 0.5
#: ... and more than this many times the median of the cases with that class, which must be at least ...
_MEDIANS = 10
#: ... this many, as there is no telling what is usual with fewer.
_FEWEST_CASES = 5
#: A class is a handful if it has at most this many voxels in the whole set ...
_HANDFUL = 100
#: ... and less than this share of them all.
_HANDFUL_SHARE = 1e-3


def size_problems(counts: ClassCounts, places: Mapping[str, str] | None = None) -> tuple[Finding, ...]:
    """Look through class counts for single cases and single classes that outweigh all others.

    A *size outlier* is a case that holds more than half of a class's voxels, the background's included, and more than ten times
    the median of the cases with that class; five cases must have it. A *handful of voxels* is a class with at most 100 voxels in
    the whole set, less than 0.1 % of all, that takes more than half of tau.

    Args:
        counts: the counts; without cases there are no outliers.
        places: file per case name, to be named in place of the case.

    Example:
        >>> cases = {f"case_{k}": [900, 100] for k in range(5)} | {"case_5": [90_000, 120]}
        >>> (finding,) = size_problems(ClassCounts([94_500, 620], cases=cases))
        >>> finding.severity, finding.kind, finding.files
        ('warning', 'size outlier', ('case_5',))
        >>> print(finding.message.partition(" the ")[0], "...")
        holds 95 % of ...
    """
    return (*_outliers(counts, places or {}), *_handfuls(counts, places or {}))


def _outliers(counts: ClassCounts, places: Mapping[str, str]) -> Iterable[Finding]:
    if not counts.cases:
        return
    names = list(counts.cases)
    per_case = np.array(list(counts.cases.values()), dtype=np.float64)
    for label, column in zip(counts.labels, per_case.T, strict=True):
        having = column[column > 0]
        if len(having) < _FEWEST_CASES:
            continue
        at = int(column.argmax())
        share, medians = column[at] / column.sum(), column[at] / np.median(having)
        if share > _MOST and medians > _MEDIANS:
            message = (
                f"holds {_percentage(share)} of the voxels of class {label}, {medians:,.0f} times the median of the "
                f"{len(having)} cases that have it: the statistics of the set are this case's"
            )
            yield Finding("warning", "size outlier", message, (places.get(names[at], names[at]),))


def _handfuls(counts: ClassCounts, places: Mapping[str, str]) -> Iterable[Finding]:
    from ..margins import class_margins  # needs torch, which counting files does without

    try:
        with warnings.catch_warnings():
            # an absent class is a finding of its own
            warnings.simplefilter("ignore", UserWarning)
            margins = class_margins(counts).negative
    except ValueError:
        return
    shares = (margins / margins.sum()).tolist()
    for at, (label, voxels, share_of_tau) in enumerate(zip(counts.labels, counts.counts.tolist(), shares, strict=True)):
        if 0 < voxels <= _HANDFUL and voxels < _HANDFUL_SHARE * counts.total and share_of_tau > 0.5:
            message = (
                f"class {label} has {voxels} voxel{'' if voxels == 1 else 's'} in the whole set and takes "
                f"{_percentage(share_of_tau)} of tau: little is left for the other classes, and a few stray voxels would "
                "change all margins"
            )
            having = [places.get(name, name) for name, values in (counts.cases or {}).items() if values[at]]
            yield Finding("warning", "handful of voxels", message, tuple(having))


def _percentage(share: float) -> str:
    """Rounded, but less than all stays less than all."""
    return f"{100 * share:.0f} %" if share < 0.99 else "more than 99 %" if share < 1 else "100 %"
