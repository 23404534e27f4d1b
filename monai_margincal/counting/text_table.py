"""Plain text tables for the terminal and the log."""

from __future__ import annotations

from collections.abc import Sequence


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their longest cell; the first one left-aligned, the others right-aligned.

    Example:
        >>> print(format_table(["class", "voxels"], [["0 background", "980"], ["1 lesion", "20"]]))
        class         voxels
        ------------  ------
        0 background     980
        1 lesion          20
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
