"""Formats that may keep the voxels in a file other than the header's, or in many."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

from .label_image import LabelImage

#: a number in a file name, as C's printf writes it
_NUMBER = re.compile(r"[^%]*%(0?\d*)d[^%]*")
#: nothing has more slices
_MAX_FILES = 1 << 20


def header_and_body(suffix: str, describe: Callable[[Path], LabelImage]) -> Callable[[Path], list[Path]]:
    """Companions of a format in which files with this ending are headers that name the files of their voxels."""

    def companions(path: Path) -> list[Path]:
        if not path.name.lower().endswith(suffix):
            return [path]
        body = describe(path).body
        return [path] if body is None else [path, *body.files]

    return companions


def numbered_files(path: Path, pattern: str, numbers: tuple[int, int, int]) -> list[str]:
    """The names that a pattern such as ``slice%03d.raw`` gives for the first number, the last one and the step."""
    first, last, step = numbers
    if _NUMBER.fullmatch(pattern) is None:
        raise ValueError(f"{path}: found the pattern {pattern!r} in the header, expected one number such as %03d in it")
    count = (last - first) // step + 1 if step else 0
    if not 0 < count <= _MAX_FILES:
        raise ValueError(f"{path}: found the numbers {first} to {last} by {step} in the header, expected file numbers")
    return [pattern % (first + step * number) for number in range(count)]


def require_files(path: Path, names: list[str], shape: tuple[int, ...], axes: int) -> tuple[Path, ...]:
    """The files of an image, each of which holds ``axes`` axes of it; a ValueError unless there are as many as that takes.

    If each holds all axes, they follow one another along the slowest one.
    """
    if not 1 <= axes <= len(shape):
        raise ValueError(f"{path}: found files of {axes} axes in the header, expected 1 to {len(shape)}")
    if axes == len(shape):
        if not names or shape[-1] % len(names):
            raise ValueError(
                f"{path}: found {len(names)} files in the header, expected a divisor of {shape[-1]} slices"
            )
    elif len(names) != (needed := math.prod(shape[axes:])):
        raise ValueError(
            f"{path}: found {len(names)} files in the header, expected {needed} of {shape[:axes]} voxels for the shape {shape}"
        )
    for name in names:
        # blanks at the ends are a part of the name for some readers
        if not name or name != name.strip() or not name.isprintable():
            raise ValueError(f"{path}: found {name!r} in the list of files, expected a file name")
    return tuple(path.parent / name for name in names)
