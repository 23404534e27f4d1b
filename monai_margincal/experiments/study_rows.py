"""The lines of the CSV files that the report of a study consists of; a file that is none of them is named."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path

from ..errors import naming_files

__all__ = ["study_rows"]


def study_rows(path: str | os.PathLike[str], columns: Sequence[str], kind: str) -> list[dict[str, str]]:
    """Read the lines of a file, each as column -> text.

    Args:
        path: the file, in UTF-8, with a header.
        columns: that the file has to have; it may have more.
        kind: what the file ought to be, by the name that reports give it, such as ``"results.csv"``.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it cannot be read, or lacks a column, or a line is shorter or longer than the header.
    """
    expected = f"expected the {kind} of a study"
    with (
        naming_files(path, f"cannot be read, {expected}", raises=ValueError),
        Path(path).open(encoding="utf-8", newline="") as file,
    ):
        reader = csv.DictReader(file)
        missing = [name for name in columns if name not in (reader.fieldnames or [])]
        rows = list(reader)
    if missing:
        raise ValueError(
            f"{path}: found no columns {', '.join(missing)}, {expected} "
            "(`margincal compare CONFIG --no-training` writes it anew)"
        )
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise ValueError(f"{path}: line {number}: found another number of columns than in the header")
    return rows
