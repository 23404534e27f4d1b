"""Folds for cross-validation: every group of cases in one of them, about as many cases in each, the same on every machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .groups import case_of, group_of, members_of_groups, require_separate_groups


def assign_folds(data: Sequence[Mapping[str, Any]], folds: int, seed: int = 0) -> list[dict[str, Any]]:
    """Say of each item of a data list in which fold its case is held out.

    The groups are drawn in the order of ``seed``, the larger ones before the smaller, and each goes into the fold that has the
    fewest cases by then. Two folds therefore differ by no more cases than the largest group has, and groups of every size are
    spread evenly. Neither the order of the data nor the machine matters.

    Args:
        data: data list; where the items have a ``"group"``, all of a group stay together, otherwise every case is drawn alone.
        folds: number of folds, at least two and at most the number of groups.
        seed: the same seed, data and number give the same folds.

    Returns:
        the items, in their order, with a ``"fold"`` from 0 to ``folds`` - 1, as MONAI's Auto3DSeg has it.

    Raises:
        TypeError: ``folds`` is no whole number.
        ValueError: there are fewer groups than folds, fewer than two folds, or only some items have a group.

    Example:
        >>> from monai_margincal.datasets import assign_folds
        >>> data = [{"case": case, "group": case[0]} for case in ("a1", "a2", "b1", "c1", "d1", "d2")]
        >>> [(item["case"], item["fold"]) for item in assign_folds(data, folds=2)]
        [('a1', 1), ('a2', 1), ('b1', 1), ('c1', 0), ('d1', 0), ('d2', 0)]
    """
    _require_number("folds", folds, "a number of folds")
    members = members_of_groups(data)
    if not 2 <= folds <= len(members):
        known = any(group_of(item) is not None for item in data)
        noun = "groups" if known else "cases"
        raise ValueError(
            f"folds: found {folds} for {len(members)} {noun}, expected 2 or more folds, and a group in each"
        )
    names = sorted(members)
    # RandomState's stream is frozen across NumPy versions, a Generator's is not
    order = [names[i] for i in np.random.RandomState(seed).permutation(len(names))]
    order.sort(key=lambda name: -len(members[name]))  # stable: groups of one size stay as they were drawn
    sizes = [0] * folds
    fold_of: dict[int, int] = {}
    for name in order:
        fold = sizes.index(min(sizes))
        sizes[fold] += len(members[name])
        fold_of.update(dict.fromkeys(members[name], fold))
    return [{**item, "fold": fold_of[index]} for index, item in enumerate(data)]


def select_fold(
    data: Sequence[Mapping[str, Any]], fold: int, where: str = "data list"
) -> dict[str, list[dict[str, Any]]]:
    """Hold out one fold of a data list for validation.

    Args:
        data: data list whose items have a ``"fold"``, as from `assign_folds`.
        fold: the fold to hold out.
        where: what messages about the data begin with.

    Returns:
        ``{"training": the other folds, "validation": this fold}``, each in the order of ``data``.

    Raises:
        TypeError: ``fold`` is no whole number.
        ValueError: an item has no fold, there is no such fold or no other one, or a group lies in two folds.

    Example:
        >>> from monai_margincal.datasets import select_fold
        >>> select_fold([{"case": "a", "fold": 0}, {"case": "b", "fold": 1}], fold=1)["validation"]
        [{'case': 'b', 'fold': 1}]
    """
    _require_number("fold", fold, "the number of a fold")
    folds: dict[int, list[dict[str, Any]]] = {}
    for item in data:
        number = item.get("fold")
        if isinstance(number, bool) or not isinstance(number, int):
            raise ValueError(
                f"{where}: found the fold {number!r} for the case {case_of(item)!r}, expected a whole number"
            )
        folds.setdefault(number, []).append(dict(item))
    if fold not in folds or len(folds) < 2:
        raise ValueError(f"{where}: found no fold {fold} beside another one, expected one of the folds {sorted(folds)}")
    require_separate_groups({f"fold {number}": items for number, items in sorted(folds.items())}, where)
    return {
        "training": [dict(item) for item in data if item["fold"] != fold],
        "validation": folds[fold],
    }


def _require_number(name: str, value: Any, expected: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}: found {value!r}, expected {expected}, a whole number")
