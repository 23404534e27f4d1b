"""Which cases of a data list train, validate and test."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..datasets.groups import members_of_groups, require_separate_groups
from ..datasets.splits import draw_groups

__all__ = ["REST", "SAME", "TaskCases", "select_task_cases"]

#: ``training: rest``: all cases that are left
REST = "rest"

#: ``validation: training``: the training cases themselves, for a study that has too few and says so
SAME = "training"

_EXPECTED = {
    "training": "a number of cases, a share of all cases between 0 and 1, case names, or 'rest'",
    "validation": "a number of cases, a share of all cases between 0 and 1, case names, or 'training'",
    "test": "a number of cases, a share of all cases between 0 and 1, or case names",
}


@dataclass(frozen=True)
class TaskCases:
    """The three parts of a data list, with fingerprints of the contents of their files."""

    training: tuple[Mapping[str, Any], ...]
    validation: tuple[Mapping[str, Any], ...]
    test: tuple[Mapping[str, Any], ...]
    digests: Mapping[str, str]

    def digest(self, part: str) -> str:
        """Fingerprint of the part's cases, in order: names and contents, not their paths."""
        items = getattr(self, part)
        return hashlib.sha256(
            json.dumps([(str(i["case"]), self.digests[str(i["case"])]) for i in items]).encode()
        ).hexdigest()[:16]


def select_task_cases(
    data: Sequence[Mapping[str, Any]],
    parts: Mapping[str, Any],
    split_seed: int,
    seed: int,
    where: str,
    digest: Callable[[Mapping[str, Any]], str],
) -> TaskCases:
    """Divide a data list: ``split_seed`` draws test and validation cases, ``seed`` draws training cases from the rest.

    Where the items have a ``"group"``, such as a patient, whole groups are drawn: a part has about its number of cases.

    Args:
        data: data list of {"image", "label", "case"}, perhaps with a "group".
        parts: "training", "validation" and "test", each a number of cases, a share of all cases (between 0 and 1, rounded, at
            least one case), or a list of case names. ``training`` may also be "rest": all that are left; ``validation`` may be
            0, or "training": the training cases, which says nothing about others.
        split_seed: seed of the test and validation cases.
        seed: seed of the training cases.
        where: what messages begin with.
        digest: gives the fingerprint of an item's files.

    Raises:
        ValueError: a part is none of these, a name is unknown, repeated or in two parts, or there are too few cases;
            a group is in two parts, or only some items have one.
    """
    by_name = {str(item["case"]): item for item in data}
    if len(by_name) < len(data):
        raise ValueError(f"{where}: found {len(data)} items with {len(by_name)} case names, expected distinct names")
    named = _named(parts, by_name, where)
    taken = {name for names in named.values() for name in names}
    # RandomState's stream is frozen across NumPy versions
    left = sorted(name for name in by_name if name not in taken)
    members = {
        group: [left[index] for index in indices]
        for group, indices in members_of_groups([by_name[name] for name in left]).items()
    }
    order = [sorted(members)[i] for i in np.random.RandomState(split_seed).permutation(len(members))]
    chosen = dict(named)
    for part in ("test", "validation", "training"):
        if part in named or (part == "validation" and parts[part] == SAME):
            continue
        if part == "training":
            order = [order[i] for i in np.random.RandomState([seed, 40]).permutation(len(order))]
        number = _number(parts[part], part, len(data), sum(len(members[group]) for group in order), where=where)
        groups = draw_groups(order, members, number) if number else []
        order = [group for group in order if group not in set(groups)]
        chosen[part] = sorted(name for group in groups for name in members[group])
        if not chosen[part] and number:
            raise ValueError(
                f"{where}::{part}: found no group of cases for it, expected one; the other parts take all of them"
            )
    if parts["validation"] == SAME:
        chosen["validation"] = chosen["training"]
    items = {part: tuple(by_name[name] for name in chosen[part]) for part in ("training", "validation", "test")}
    alone = {part: found for part, found in items.items() if part != "validation" or parts["validation"] != SAME}
    require_separate_groups(alone, where)
    used = {str(item["case"]): item for part in items.values() for item in part}
    return TaskCases(**items, digests={name: digest(item) for name, item in used.items()})


def _named(parts: Mapping[str, Any], by_name: Mapping[str, Any], where: str) -> dict[str, list[str]]:
    """The parts that are lists of names."""
    named: dict[str, list[str]] = {}
    part_of: dict[str, str] = {}
    for part, value in parts.items():
        if isinstance(value, str | int | float) or not isinstance(value, Sequence):
            continue
        names = [str(name) for name in value]
        unknown = [name for name in names if name not in by_name]
        if unknown or not names or len(set(names)) < len(names):
            raise ValueError(f"{where}::{part}: found the cases {names}, expected distinct names of the data list")
        for name in names:
            if name in part_of:
                raise ValueError(
                    f"{where}::{part}: found the case {name!r}, which is in {part_of[name]} too; expected every case in one part"
                )
            part_of[name] = part
        named[part] = names
    return named


def _number(value: Any, part: str, total: int, left: int, where: str) -> int:
    """How many cases to draw."""
    if value == REST and part == "training":
        value = left
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not (isinstance(value, Integral) or 0 < float(value) < 1):
        raise ValueError(f"{where}::{part}: found {value!r}, expected {_EXPECTED[part]}")
    is_share = not isinstance(value, Integral)
    number = max(1, round(float(value) * total)) if is_share else int(value)
    least = 0 if part == "validation" and not is_share else 1
    if not least <= number <= left:
        raise ValueError(
            f"{where}::{part}: found {number} cases, expected a number from {least} to the {left} that are left"
        )
    return number
