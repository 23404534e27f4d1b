"""Groups on both sides of a split: known ones, and those that only the names of the cases give away."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from ..findings import Finding
from .groups import case_of, described_parts, group_of, shared_groups

#: a word of a name that counts something: `0004`, `seq2`, `nod10`; a DICOM number with its dots counts once
_NUMBERED = re.compile(r"[^\W\d_]*(?P<number>\d+(?:\.\d+)*)")
#: a year or a date says when, not who
_DATE = re.compile(r"(?:19|20)\d\d(?:[01]\d[0-3]\d)?")
_WORD = re.compile(r"[^\W_]+(?:\.[^\W_]+)*")


def suggested_group(case: str) -> str | None:
    """The group that a case's name suggests: what stands before its last number, if that holds a number as well.

    A name is taken as words between ``_``, ``-``, spaces and other signs. Words of digits, or of letters and then digits, are
    numbers; years and dates are not. A name with one number, such as ``case_001``, suggests nothing.

    Example:
        >>> suggested_group("LIDC-IDRI-0004_R_1"), suggested_group("patient1_seq2_0089"), suggested_group("sub-01_ses-2_T1w")
        ('LIDC-IDRI-0004', 'patient1_seq2', 'sub-01')
        >>> suggested_group("hippocampus_001"), suggested_group("BraTS2021_00012"), suggested_group("case_2023_001")
        (None, None, None)
    """
    ends = []
    for word in _WORD.finditer(case):
        numbered = _NUMBERED.fullmatch(word[0])
        if numbered and not _DATE.fullmatch(numbered["number"]):
            ends.append(word.end())
    return case[: ends[-2]] if len(ends) > 1 else None


def find_shared_groups(parts: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Finding]:
    """Look for groups that lie in more than one part of a data list.

    Args:
        parts: name of the part -> data list.

    Returns:
        an error, if the items say their groups and a group lies in two parts. A warning, if no item says its group and the names
        of the cases suggest groups of which one lies in two parts (see `suggested_group`; what all names have in common
        suggests nothing). Otherwise nothing.

    Example:
        >>> found = find_shared_groups({"training": [{"case": "p1_1"}, {"case": "p2_1"}], "validation": [{"case": "p1_2"}]})
        >>> found[0].severity, found[0].files
        ('warning', ('p1_1', 'p1_2'))
        >>> find_shared_groups({"training": [{"case": "case_001"}], "validation": [{"case": "case_002"}]})
        []
    """
    items = [item for part in parts.values() for item in part]
    known = any(group_of(item) is not None for item in items)
    if not known and len({suggested_group(case_of(item)) for item in items} - {None}) < 2:
        return []
    shared = shared_groups(parts, group_of if known else lambda item: suggested_group(case_of(item)))
    if not shared:
        return []
    first, *others = shared
    more = f", and {len(others)} more in two parts" if others else ""
    found = f"the group {first!r} {described_parts(shared[first])}{more}"
    cases = tuple(case for part in shared[first].values() for case in part)
    if known:
        return [Finding("error", "group in two parts", f"found {found}, expected every group in one part", cases)]
    message = (
        f"found names that suggest {found}, expected every group (patient, film) in one part: say the groups with `groups` or "
        '`group_pattern` ("{group}" if every case is a group of its own)'
    )
    return [Finding("warning", "group in two parts", message, cases)]


def warn_of_shared_groups(parts: Mapping[str, Sequence[Mapping[str, Any]]], stacklevel: int = 2) -> None:
    """Give the findings of `find_shared_groups` as warnings.

    Args:
        parts: name of the part -> data list.
        stacklevel: as for :func:`warnings.warn`, counted from the caller of this function.
    """
    for finding in find_shared_groups(parts):
        warnings.warn(finding.message, UserWarning, stacklevel + 1)
