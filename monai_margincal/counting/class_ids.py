"""Which label values are classes: one reading of ``num_classes`` and ``ids`` for everything that counts labels."""

from __future__ import annotations

import operator
from collections.abc import Iterable


def declared_class_ids(num_classes: int | None, ids: Iterable[int] | None) -> tuple[int, ...] | None:
    """The declared label ids in ascending order, or None when neither argument declares any.

    Args:
        num_classes: number of classes including background; declares the ids 0, 1, ..., num_classes - 1.
        ids: the label values themselves, which may have gaps. With both, ``ids`` must have ``num_classes`` entries.

    Raises:
        TypeError: ``num_classes`` or an id is not an integer.
        ValueError: ``num_classes`` < 1, no ids, a repeated id, or a number of ids other than ``num_classes``.

    Example:
        >>> declared_class_ids(3, None)
        (0, 1, 2)
        >>> declared_class_ids(None, [0, 517, 9])
        (0, 9, 517)
    """
    if num_classes is not None:
        num_classes = as_integer(num_classes, "num_classes")
        if num_classes < 1:
            raise ValueError(f"num_classes is {num_classes}: expected at least 1")
    if ids is None:
        return None if num_classes is None else tuple(range(num_classes))
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise TypeError(f"ids is {ids!r}: expected a sequence of integer label values")
    values = [as_integer(value, "ids") for value in ids]
    if not values:
        raise ValueError("ids is empty: expected at least one label value")
    repeated = sorted({value for value in values if values.count(value) > 1})
    if repeated:
        raise ValueError(f"ids must be distinct, found {repeated} more than once")
    if num_classes is not None and len(values) != num_classes:
        raise ValueError(f"num_classes is {num_classes}, but ids has {len(values)} entries: expected the same number")
    return tuple(sorted(values))


def as_integer(value: object, argument: str) -> int:
    """``value`` as a Python integer; a TypeError that names ``argument`` for anything else, booleans included."""
    if isinstance(value, bool):
        raise TypeError(f"{argument} must be an integer, found {value!r}")
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{argument} must be an integer, found {value!r}") from None
