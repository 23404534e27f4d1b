"""Formats that may keep the voxels in another file than the header."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .label_image import LabelImage


def header_and_body(suffix: str, describe: Callable[[Path], LabelImage]) -> Callable[[Path], list[Path] | None]:
    """Companions of a format of which files with this ending are headers that name the file of their voxels."""

    def companions(path: Path) -> list[Path] | None:
        if not path.name.lower().endswith(suffix):
            return [path]
        body = describe(path).body
        return None if body is None else [path, body.file]

    return companions
