"""Class counts from whatever form a caller has them in."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from .class_counts import ClassCounts

__all__ = ["as_class_counts"]


def as_class_counts(value: Any) -> ClassCounts:
    """Class counts from any form that an argument ``class_counts`` may take.

    Args:
        value: a `ClassCounts`; a sequence, array or tensor of counts of the classes 0 ... C - 1; a mapping ``id -> count``
            (keys may be digits as strings, as JSON makes them); the path of a JSON file written by `ClassCounts.to_json`;
            or what `ClassCounts.to_dict` gives.

    Raises:
        TypeError: none of these.
        ValueError, FileNotFoundError: see `ClassCounts` and `ClassCounts.from_json`.

    Example:
        >>> as_class_counts({"0": 980, "1": 20})
        ClassCounts({0: 980, 1: 20})
    """
    if isinstance(value, ClassCounts):
        return value
    if isinstance(value, (str, os.PathLike)):
        return ClassCounts.from_json(value)
    if isinstance(value, Mapping):
        if "format" in value:
            return ClassCounts.from_dict(value)
        try:
            by_id = {int(label) if isinstance(label, str) else label: count for label, count in value.items()}
        except ValueError:
            raise ValueError(f"class_counts has the keys {list(value)}: expected label ids (integers)") from None
        return ClassCounts(by_id)
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Sequence):
        return ClassCounts(value)
    raise TypeError(
        f"class_counts is a {type(value).__name__}: expected ClassCounts, counts per class, a mapping id -> count or a path"
    )
