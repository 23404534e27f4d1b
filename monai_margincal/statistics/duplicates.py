"""Labels that are named twice, one way or another: they would be counted twice."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..formats import companions_of, format_of
from ..formats.format import itself_alone


def refuse_repeated_files(paths: Sequence[Path], places: Sequence[str], images: Sequence[Any] | None = None) -> None:
    """Refuse label files two of which are one: the same path, even through links, both files of a pair, or a slice of a series.

    A label that belongs to two images (two sequences of one examination) is two labels. Files with two names on the disk (hard
    links) are two as well: what they hold was put there twice.

    Args:
        paths: files that exist, each counted as a whole.
        places: where each was named, for messages, for example ``"data[3]"``.
        images: the image or images of each, None where there is none.

    Raises:
        ValueError: two of them are one; the message names both and where they were named.

    Example:
        >>> refuse_repeated_files([Path("a.nii"), Path("b/../a.nii")], ["data[0]", "data[1]"])
        Traceback (most recent call last):
        ValueError: b/../a.nii: found the label a.nii again (data[0] and data[1]), expected every label once: ...
    """
    beside = [_plain(image) for image in images or [None] * len(paths)]
    first: dict[Any, int] = {}

    def refuse(other: int, index: int) -> None:
        raise ValueError(
            f"{paths[index]}: found the label {paths[other]} again ({places[other]} and {places[index]}), expected every label "
            "once: its voxels would be counted twice"
        )

    for index, path in enumerate(paths):
        other = first.setdefault((os.path.realpath(path), beside[index]), index)
        if other != index:
            refuse(other, index)
    for index, path in enumerate(paths):
        for companion in _companions(path):
            other = first.get((os.path.realpath(companion), beside[index]), index)
            if other != index and format_of(paths[other]) is format_of(path):
                refuse(min(other, index), max(other, index))


def _companions(path: Path) -> list[Path]:
    try:
        found = format_of(path)
        if found is None or found.companions is itself_alone:
            return []
        return companions_of(path) or []
    except (ValueError, OSError):  # reported when the file is counted
        return []


def refuse_repeated_items(dataset: Any, key: str) -> None:
    """Refuse a data set in which two entries are the same in every respect; files are compared by their place on the disk.

    Two entries that share a label file but differ elsewhere (in the image, the slice or the patch to take) are two labels.

    Args:
        dataset: a data list, or a data set that shows its list as ``data``; anything else passes.
        key: key of the label.

    Raises:
        ValueError: two entries are the same; the message names both.
    """
    entries = getattr(dataset, "data", dataset)
    if not isinstance(entries, Sequence):
        return
    first: dict[Any, int] = {}
    for index, entry in enumerate(entries):
        files = label_files(entry, key)
        if files:
            other = first.setdefault(_plain(entry), index)
            if other != index:
                raise ValueError(
                    f"{files[0]}: found the label {label_files(entries[other], key)[0]} again (data[{other}] and data[{index}], "
                    "the same in everything), expected every label once: its voxels would be counted twice"
                )


def label_files(entry: Any, key: str) -> list[Path]:
    """The files that an entry of a data list names as its label: one, several, or none where the label is an array.

    Example:
        >>> label_files({"label": ["a.nii"]}, "label"), label_files({"label": 3}, "label")
        ([PosixPath('a.nii')], [])
    """
    value: Any = entry.get(key) if isinstance(entry, Mapping) else None
    parts = value if isinstance(value, (list, tuple)) else [value]
    return [Path(part) for part in parts] if all(isinstance(part, (str, os.PathLike)) for part in parts) else []


def _plain(value: Any) -> Any:
    """Something to compare entries by: files by their place, arrays and other objects by identity."""
    if isinstance(value, Mapping):
        return tuple((str(name), _plain(value[name])) for name in sorted(value, key=str))
    if isinstance(value, (list, tuple)):
        parts = tuple(_plain(part) for part in value)
        # a list of one file stands for that file
        return parts[0] if len(parts) == 1 else parts
    if isinstance(value, (str, os.PathLike)):
        try:
            return os.path.realpath(value)
        except ValueError:  # a text that cannot be a path
            return value
    return value if value is None or isinstance(value, (bool, int, float)) else id(value)
