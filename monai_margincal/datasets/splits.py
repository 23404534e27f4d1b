"""Divide a data list into training, validation and other parts: by case names or fractions, reproducibly, without overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .groups import members_of_groups, require_separate_groups


def select_cases(data: Sequence[Mapping[str, Any]], cases: Sequence[str | int] | str | int) -> list[dict[str, Any]]:
    """Take the items of a data list by their case names, in the order of the names.

    Args:
        data: data list whose items have a ``"case"``.
        cases: the wanted names, or one name.

    Returns:
        the items of these cases.

    Raises:
        ValueError: ``cases`` is empty, a name is unknown, or a name is given twice.

    Example:
        >>> from monai_margincal.datasets import select_cases
        >>> select_cases([{"case": "a"}, {"case": "b"}, {"case": "c"}], ["c", "a"])
        [{'case': 'c'}, {'case': 'a'}]
    """
    names = [str(case) for case in ([cases] if isinstance(cases, str | int) else cases)]
    by_name = {str(item["case"]): dict(item) for item in data}
    unknown = [name for name in names if name not in by_name]
    if unknown or not names or len(set(names)) < len(names):
        raise ValueError(f"expected distinct case names out of {sorted(by_name)}, found {names}")
    return [by_name[name] for name in names]


def split_datalist(
    data: Sequence[Mapping[str, Any]],
    splits: Mapping[str, float | Sequence[str | int] | str | None],
    seed: int = 0,
) -> dict[str, list[dict[str, Any]]]:
    """Divide a data list into named parts that share no case and no group.

    A part is said by a list of case names, by a fraction of all cases, or by None: the cases that no other part takes.
    Fractions are rounded to whole cases, at least one, and drawn at random (by ``seed``) from the cases that no list names;
    the order of ``data`` does not matter. Within a part the order of ``data`` is kept, except for a list of names, which gives
    its own order.

    Where the items have a ``"group"`` (see `monai_margincal.datasets.assign_groups`), whole groups are drawn, as long as they
    fit into the fraction, and in the end the smallest one left, if that comes nearer to it. A part then misses its number of
    cases by at most half of that group, unless it holds that group alone.

    Args:
        data: data list whose items have a ``"case"``, and either all or none of them a ``"group"``.
        splits: part name -> case names, fraction in (0, 1], or None (for one part at most).
        seed: the same seed, data and splits give the same parts.

    Returns:
        part name -> data list.

    Raises:
        TypeError: a part is neither names, nor a float, nor None.
        ValueError: a part would be empty, two parts name the same case, a group would lie in two parts, a name is unknown, a
            fraction lies outside (0, 1], the fractions need more cases than there are, or more than one part is None.

    Example:
        >>> from monai_margincal.datasets import split_datalist
        >>> data = [{"case": name} for name in "abcde"]
        >>> parts = split_datalist(data, {"training": None, "validation": 0.4})
        >>> {name: [item["case"] for item in part] for name, part in parts.items()}
        {'training': ['b', 'd', 'e'], 'validation': ['a', 'c']}
        >>> parts = split_datalist(data, {"training": None, "validation": ["e"]})
        >>> len(parts["training"])
        4
        >>> data = [{"case": case, "group": case[0]} for case in ("a1", "a2", "a3", "b1", "b2", "c1")]
        >>> parts = split_datalist(data, {"training": None, "validation": 0.5})
        >>> {name: [item["case"] for item in part] for name, part in parts.items()}
        {'training': ['a1', 'a2', 'a3'], 'validation': ['b1', 'b2', 'c1']}
    """
    members_of_groups(data)  # either all items have a group or none
    parts = _named_parts(data, splits)
    taken = {str(item["case"]) for part in parts.values() for item in part}
    left = sorted((item for item in data if str(item["case"]) not in taken), key=lambda item: str(item["case"]))
    drawn = [name for name, part in splits.items() if part is None or isinstance(part, float)]
    if drawn:
        # names that take half of a group leave the other half to be drawn
        require_separate_groups({**parts, " or ".join(drawn): left}, "splits")
    else:
        require_separate_groups(parts, "splits")

    groups = members_of_groups(left)
    names = sorted(groups)
    # RandomState's stream is frozen across NumPy versions, a Generator's is not
    order = [names[i] for i in np.random.RandomState(seed).permutation(len(names))]
    for name, part in splits.items():
        if not isinstance(part, float):
            continue
        if not 0.0 < part <= 1.0:
            raise ValueError(f"the fraction of part {name!r} must lie in (0, 1], found {part}")
        number = max(1, round(part * len(data)))
        available = sum(len(groups[group]) for group in order)
        if number > available:
            raise ValueError(
                f"part {name!r} needs {number} of {len(data)} cases (fraction {part}), "
                f"but the other parts leave only {available}"
            )
        chosen = draw_groups(order, groups, number)
        order = [group for group in order if group not in set(chosen)]
        cases = {str(left[index]["case"]) for group in chosen for index in groups[group]}
        parts[name] = [dict(item) for item in data if str(item["case"]) in cases]

    rest = [name for name, part in splits.items() if part is None]
    if len(rest) > 1:
        raise ValueError(f"only one part can be None (the remaining cases), found {rest}")
    for name in rest:
        cases = {str(left[index]["case"]) for group in order for index in groups[group]}
        parts[name] = [dict(item) for item in data if str(item["case"]) in cases]
        if not parts[name]:
            known = f", {len(names)} groups for {len(splits)} parts" if left and "group" in left[0] else ""
            raise ValueError(f"no case is left for part {name!r}: the other parts take all {len(data)} cases{known}")
    return {name: parts[name] for name in splits}


def _named_parts(
    data: Sequence[Mapping[str, Any]], splits: Mapping[str, float | Sequence[str | int] | str | None]
) -> dict[str, list[dict[str, Any]]]:
    """The parts that are lists of names."""
    parts: dict[str, list[dict[str, Any]]] = {}
    taken: dict[str, str] = {}
    for name, part in splits.items():
        if isinstance(part, str) or (isinstance(part, Sequence) and not isinstance(part, bytes)):
            parts[name] = select_cases(data, part)
            for item in parts[name]:
                case = str(item["case"])
                if case in taken:
                    raise ValueError(
                        f"case {case!r} is named in two parts, {taken[case]!r} and {name!r}; parts must share no case"
                    )
                taken[case] = name
        elif part is not None and not isinstance(part, float):
            raise TypeError(f"part {name!r} must be a list of case names, a float fraction or None, found {part!r}")
    return parts


def draw_groups(order: Sequence[str], groups: Mapping[str, Sequence[Any]], number: int) -> list[str]:
    """The groups that come nearest to a number of cases together: the first of an order that fit, then perhaps a small one."""
    chosen, free = [], number
    for group in order:
        if len(groups[group]) <= free:
            chosen.append(group)
            free -= len(groups[group])
    taken = set(chosen)
    left = [group for group in order if group not in taken]
    if left:
        smallest = min(left, key=lambda group: len(groups[group]))
        if not chosen or len(groups[smallest]) < 2 * free:
            chosen.append(smallest)
    return chosen
