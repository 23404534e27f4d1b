"""Groups of cases that belong together, such as the scans of a patient or the frames of a film: said once, never on two sides."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from ..counting.case_names import case_name
from ..errors import some_of
from .group_table import read_group_table

_GROUP = "{group}"
_WHOLE_NUMBER = re.compile(r"0*(\d+)(?:\.0*)?")

_Items = Sequence[Mapping[str, Any]]


def assign_groups(
    data: _Items,
    groups: str | os.PathLike[str] | Mapping[str, str | int] | None = None,
    group_column: str | None = None,
    group_pattern: str | None = None,
) -> list[dict[str, Any]]:
    """Say of each item of a data list which group its case belongs to.

    Args:
        data: data list; the name of a case is the item's ``"case"``, or else that of its image file without the ending.
        groups: a CSV file, see `monai_margincal.datasets.read_group_table`, or case name -> group. It may hold more cases.
        group_column: the column of groups in the file; needed where the header leaves a choice.
        group_pattern: instead of `groups`, what case names look like: ``{group}`` stands for the group, which is as long as it
            can be, and ``*`` for anything else. ``"{group}_*"`` makes a group of the frames ``film_2_001`` and ``film_2_002``,
            ``"{group}"`` one of every case.

    Returns:
        the items with a ``"group"``; as they are if neither `groups` nor `group_pattern` is given.

    Raises:
        TypeError: a group of a mapping is neither a text nor a whole number, or the pattern is no text.
        ValueError: a case is not in the table or does not fit the pattern; a group is empty; two groups are the same number,
            written differently (``7`` and ``007``); an item already has another group; both ways are given, or a column without
            a table.

    Example:
        >>> data = [{"case": "P01_left"}, {"case": "P01_right"}, {"case": "P02_left"}]
        >>> [item["group"] for item in assign_groups(data, group_pattern="{group}_*")]
        ['P01', 'P01', 'P02']
        >>> assign_groups(data[:1], {"P01_left": 1})
        [{'case': 'P01_left', 'group': '1'}]
    """
    if groups is not None and group_pattern is not None:
        raise ValueError(f"group_pattern: found {group_pattern!r} beside `groups`, expected one of the two")
    if groups is None and group_column is not None:
        raise ValueError(f"group_column: found {group_column!r} without a table, expected `groups` to name its file")
    cases = [case_of(item) for item in data]
    if group_pattern is not None:
        found = _groups_in_names(cases, group_pattern)
    elif groups is None:
        return [dict(item) for item in data]
    elif isinstance(groups, Mapping):
        if group_column is not None:
            raise ValueError(f"group_column: found {group_column!r} beside a mapping, expected a file in `groups`")
        found = _look_up(cases, {str(case): _as_text(case, group) for case, group in groups.items()}, "groups")
    else:
        found = _look_up(cases, read_group_table(groups, group_column), str(groups))
    for item, case in zip(data, cases, strict=True):
        if group_of(item) not in (None, found[case]):
            raise ValueError(
                f"data list: found the case {case!r} in the group {group_of(item)!r}, expected {found[case]!r}, as "
                f"{'the table' if group_pattern is None else 'the pattern'} says"
            )
    return [{**item, "group": found[case]} for item, case in zip(data, cases, strict=True)]


def case_of(item: Mapping[str, Any]) -> str:
    """The name of an item's case: its ``"case"``, or else the name of its first file.

    Example:
        >>> case_of({"case": 7}), case_of({"image": "/data/scan_1.nii.gz"})
        ('7', 'scan_1')
    """
    if "case" in item:
        return str(item["case"])
    path = item.get("image", item.get("label"))
    path = path[0] if isinstance(path, list | tuple) and path else path
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"data list: found the item {dict(item)!r}, expected a 'case' or the path of an 'image'")
    return case_name(Path(path))


def group_of(item: Mapping[str, Any]) -> str | None:
    """An item's group; None where nobody has said it.

    Raises:
        ValueError: the group is empty, or neither a text nor a whole number.

    Example:
        >>> group_of({"case": "a", "group": 7}), group_of({"case": "a"})
        ('7', None)
    """
    return None if item.get("group") is None else _as_text(case_of(item), item["group"])


def members_of_groups(data: _Items) -> dict[str, list[int]]:
    """Group -> positions of its items, where the groups are known; otherwise every case is a group of its own.

    Raises:
        ValueError: only some of the items have a group.

    Example:
        >>> members_of_groups([{"case": "a", "group": "p"}, {"case": "b", "group": "q"}, {"case": "c", "group": "p"}])
        {'p': [0, 2], 'q': [1]}
    """
    groups = [group_of(item) for item in data]
    without = [case_of(item) for item, group in zip(data, groups, strict=True) if group is None]
    if 0 < len(without) < len(data):
        raise ValueError(
            f"data list: found no group for {_shown(without)}, expected one for every case, as {len(data) - len(without)} have"
        )
    members: dict[str, list[int]] = {}
    for index, (item, group) in enumerate(zip(data, groups, strict=True)):
        members.setdefault(case_of(item) if group is None else group, []).append(index)
    return members


def require_separate_groups(parts: Mapping[str, _Items], where: str = "data list") -> None:
    """Refuse parts of a data list that share a group, as far as the items say their groups.

    Args:
        parts: name of the part -> data list.
        where: what the message begins with.

    Raises:
        ValueError: a group is in two parts; the message names it and its cases.

    Example:
        >>> require_separate_groups({"training": [{"case": "a", "group": "p"}], "test": [{"case": "b", "group": "p"}]})
        Traceback (most recent call last):
        ValueError: data list: found the group 'p' in 'training' ('a') and in 'test' ('b'), expected every group in one part
    """
    shared = shared_groups(parts, group_of)
    if shared:
        first, *others = shared
        more = f", and {len(others)} more in two parts" if others else ""
        raise ValueError(
            f"{where}: found the group {first!r} {described_parts(shared[first])}{more}, expected every group in one part"
        )


def shared_groups(
    parts: Mapping[str, _Items], group: Callable[[Mapping[str, Any]], str | None]
) -> dict[str, dict[str, list[str]]]:
    """The groups with cases in more than one part: group -> part -> cases, in the order of the names of the groups.

    Args:
        parts: name of the part -> data list.
        group: gives an item's group, or None for an item that is left aside.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for part, items in parts.items():
        for item in items:
            name = group(item)
            if name is not None:
                found.setdefault(name, {}).setdefault(part, []).append(case_of(item))
    return {name: cases for name, cases in sorted(found.items()) if len(cases) > 1}


def described_parts(cases: Mapping[str, Sequence[str]]) -> str:
    """Where the cases of a group are, in words.

    Example:
        >>> described_parts({"training": ["a", "b"], "validation": ["c"]})
        "in 'training' ('a', 'b') and in 'validation' ('c')"
    """
    *others, last = [f"in {part!r} ({_shown(names)})" for part, names in cases.items()]
    return f"{', '.join(others)} and {last}"


def _groups_in_names(cases: Iterable[str], pattern: str) -> dict[str, str]:
    if not isinstance(pattern, str):
        raise TypeError(f"group_pattern: found {pattern!r}, expected a text that holds {_GROUP} once")
    if pattern.count(_GROUP) != 1:
        raise ValueError(f"group_pattern: found {pattern!r}, expected {_GROUP} in it once")
    escaped = re.escape(pattern).replace(re.escape("*"), ".*?").replace(re.escape(_GROUP), "(?P<group>.+)")
    fits = re.compile(escaped, re.DOTALL)
    matches = {case: fits.fullmatch(case) for case in cases}
    without = sorted(case for case, match in matches.items() if match is None)
    if without:
        raise ValueError(
            f"group_pattern: found no group in the case names {_shown(without)}, expected names like {pattern!r} "
            f"({_GROUP} stands for the group, * for anything)"
        )
    return {case: match["group"] for case, match in matches.items() if match is not None}


def _look_up(cases: Iterable[str], table: Mapping[str, str], where: str) -> dict[str, str]:
    without = sorted({case for case in cases if case not in table})
    if without:
        near = {case.lstrip("0"): case for case in table}.get(without[0].lstrip("0"))
        hint = (
            f"; it has {near!r}: have leading zeros been lost?"
            if near
            else f", such as {min(table)!r}"
            if table
            else ""
        )
        raise ValueError(f"{where}: found no group for {_shown(without)}, expected one for every case{hint}")
    found = {case: table[case] for case in cases}
    _require_one_spelling(found.values(), where)
    return found


def _require_one_spelling(groups: Iterable[str], where: str) -> None:
    """Spreadsheets write the number 007 as 7 and, in a column with gaps, as 7.0: one patient would become two."""
    spelt: dict[str, str] = {}
    for group in sorted(set(groups)):
        number = _WHOLE_NUMBER.fullmatch(group)
        if number and spelt.setdefault(number[1], group) != group:
            raise ValueError(
                f"{where}: found the groups {spelt[number[1]]!r} and {group!r}, which are the same number, "
                "expected one way of writing it"
            )


def _as_text(case: Any, group: Any) -> str:
    if isinstance(group, bool) or not isinstance(group, str | Integral):
        raise TypeError(f"groups: found {group!r} for the case {case!r}, expected a text or a whole number")
    text = str(group).strip()
    if not text:
        raise ValueError(f"groups: found an empty group for the case {case!r}, expected a text")
    return text


def _shown(names: Iterable[str]) -> str:
    return some_of(map(repr, names), at_most=5)
