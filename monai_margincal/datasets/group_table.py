"""The group of each case, such as its patient, from a table: a CSV file with a column of cases and a column of groups."""

from __future__ import annotations

import csv
import os
from pathlib import Path

CASE_COLUMN = "case"
#: columns of groups that need not be named, in any letter case
GROUP_COLUMNS = ("group", "patient", "patient_id", "subject", "subject_id")

_SEPARATORS = ",;\t"


def read_group_table(path: str | os.PathLike[str], column: str | None = None) -> dict[str, str]:
    r"""Read which group each case belongs to.

    The table is UTF-8 text with one header line and cells separated by commas, semicolons or tabs. Cells stay text: ``007`` is
    not 7. A case may have several rows that agree.

    Args:
        path: the CSV file. Its cases are in the column ``case``, or else in the first column.
        column: the column of groups. None: the only one of the columns `GROUP_COLUMNS` that there is, in any letter case, or
            the only column beside that of the cases.

    Returns:
        case name -> group.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no such table, has no such column, leaves a case or a group empty, or gives a case two groups.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table = Path(folder, "cases.csv")
        ...     _ = table.write_text("case,age,patient_id\nscan_1,50,007\nscan_2,50,007\n")
        ...     read_group_table(table)
        {'scan_1': '007', 'scan_2': '007'}
    """
    file = Path(path).expanduser()
    rows = _rows(file)
    header = rows[0][1]
    case_at = header.index(CASE_COLUMN) if CASE_COLUMN in header else 0
    group_at = _group_column(file, header, case_at, column)
    found: dict[str, tuple[str, int]] = {}
    for line, cells in rows[1:]:
        if len(cells) != len(header):
            raise ValueError(
                f"{file}: found {len(cells)} cells in line {line}, expected {len(header)} as in the header"
            )
        case, group = cells[case_at], cells[group_at]
        for name, cell in ((header[case_at], case), (header[group_at], group)):
            if not cell:
                raise ValueError(
                    f"{file}: found no {name!r} in line {line} ({','.join(cells)}), expected one for every row"
                )
        first, first_line = found.setdefault(case, (group, line))
        if first != group:
            raise ValueError(
                f"{file}: found the case {case!r} in {header[group_at]!r} {first!r} (line {first_line}) and {group!r} "
                f"(line {line}), expected one group for each case"
            )
    return {case: group for case, (group, _) in found.items()}


def _rows(file: Path) -> list[tuple[int, list[str]]]:
    """Line number and cells of every row that is not blank, the header first."""
    expected = "a CSV file with a column of cases and a column of groups"
    try:
        # the mark that Excel puts before UTF-8 is no part of the first column's name
        with file.open(encoding="utf-8-sig", newline="") as text:
            first = text.readline()
            text.seek(0)
            reader = csv.reader(text, delimiter=max(_SEPARATORS, key=first.count), strict=True)
            rows = [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader]
    except FileNotFoundError:
        raise FileNotFoundError(f"{file}: no such file, expected {expected}") from None
    except (ValueError, csv.Error, IsADirectoryError) as error:
        raise ValueError(f"{file}: found {error}, expected {expected}") from error
    filled = [(line, cells) for line, cells in rows if any(cells)]
    if len(filled) < 2 or len(filled[0][1]) < 2:
        found = "no rows below a header" if len(filled) < 2 else f"one column, {filled[0][1][0]!r}"
        raise ValueError(f"{file}: found {found}, expected {expected}")
    header = filled[0][1]
    if len(set(header)) < len(header):
        raise ValueError(f"{file}: found the columns {header}, expected each name once")
    return filled


def _group_column(file: Path, header: list[str], case_at: int, column: str | None) -> int:
    others = [name for at, name in enumerate(header) if at != case_at]
    if column is not None:
        if column not in others:
            raise ValueError(f"{file}: found no column {column!r}, expected one of {others}")
        return header.index(column)
    known = [name for name in others if name.lower() in GROUP_COLUMNS]
    candidates = known or others
    if len(candidates) > 1:
        raise ValueError(
            f"{file}: found the columns {candidates}, expected `group_column` to name the one of the groups"
        )
    return header.index(candidates[0])
