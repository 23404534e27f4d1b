"""Divide a data list into training, validation and other parts: by case names, by fractions, reproducibly, without overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


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
    """Divide a data list into named parts that share no case.

    A part is said by a list of case names, by a fraction of all cases, or by None: the cases that no other part takes.
    Fractions are rounded to whole cases, at least one, and drawn at random (by ``seed``) from the cases that no list names.
    Within a part the order of ``data`` is kept, except for a list of names, which gives its own order.

    Args:
        data: data list whose items have a ``"case"``.
        splits: part name -> case names, fraction in (0, 1], or None (for one part at most).
        seed: the same seed, data and splits give the same parts.

    Returns:
        part name -> data list.

    Raises:
        TypeError: a part is neither names, nor a float, nor None.
        ValueError: a part would be empty, two parts name the same case, a name is unknown, a fraction lies outside (0, 1],
            the fractions need more cases than there are, or more than one part is None.

    Example:
        >>> from monai_margincal.datasets import split_datalist
        >>> data = [{"case": name} for name in "abcde"]
        >>> parts = split_datalist(data, {"training": None, "validation": 0.4})
        >>> {name: [item["case"] for item in part] for name, part in parts.items()}
        {'training': ['b', 'd', 'e'], 'validation': ['a', 'c']}
        >>> parts = split_datalist(data, {"training": None, "validation": ["e"]})
        >>> len(parts["training"])
        4
    """
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

    left = [str(item["case"]) for item in data if str(item["case"]) not in taken]
    # RandomState's stream is frozen across NumPy versions, a Generator's is not
    order = [left[i] for i in np.random.RandomState(seed).permutation(len(left))]
    for name, part in splits.items():
        if not isinstance(part, float):
            continue
        if not 0.0 < part <= 1.0:
            raise ValueError(f"the fraction of part {name!r} must lie in (0, 1], found {part}")
        number = max(1, round(part * len(data)))
        if number > len(order):
            raise ValueError(
                f"part {name!r} needs {number} of {len(data)} cases (fraction {part}), "
                f"but the other parts leave only {len(order)}"
            )
        drawn, order = set(order[:number]), order[number:]
        parts[name] = [dict(item) for item in data if str(item["case"]) in drawn]

    rest = [name for name, part in splits.items() if part is None]
    if len(rest) > 1:
        raise ValueError(f"only one part can be None (the remaining cases), found {rest}")
    for name in rest:
        parts[name] = [dict(item) for item in data if str(item["case"]) in set(order)]
        if not parts[name]:
            raise ValueError(f"no case is left for part {name!r}: the other parts take all {len(data)} cases")
    return {name: parts[name] for name in splits}
