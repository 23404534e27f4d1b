"""A table as text cells, written as Markdown, LaTeX or rows of a page: the best of each column marked, groups of rows apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Table"]

_LATEX = {
    "&": r"\&",
    "%": r"\%",
    "_": r"\_",
    "#": r"\#",
    "±": r"$\pm$",
    "–": "--",
    "−": "$-$",
    "á": r"\'a",
    "Δ": r"$\Delta$",
}
_NUMBER = re.compile(r"[+−-]?\d+(\.\d+)?")


@dataclass(frozen=True)
class Table:
    """A table as text cells.

    Attributes:
        title: one line above it.
        header: names of the columns; the first column names the row.
        rows: cells.
        note: a line below it.
        highest: columns of which the highest number is the best.
        lowest: columns of which the lowest number is the best.
        breaks: (row, heading): before this row a group begins that cannot be compared with the rows above it. The best are
            sought in the first group only.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    highest: tuple[str, ...] = ()
    lowest: tuple[str, ...] = ()
    breaks: tuple[tuple[int, str], ...] = ()

    @property
    def best(self) -> frozenset[tuple[int, int]]:
        """Row and column of the best cells. Equal ones are all marked; a column in which all are equal has no best.

        A cell counts by the number that it begins with, "(reference)" as 0; cells without a number do not count.

        Example:
            >>> sorted(Table("IoU", ("method", "IoU"), (("CE", "70.0"), ("Dice", "71.0 ± 1")), highest=("IoU",)).best)
            [(1, 1)]
        """
        last = min([row for row, _ in self.breaks], default=len(self.rows))
        found = set()
        for column, name in enumerate(self.header):
            if name not in self.highest and name not in self.lowest:
                continue
            numbers = {row: _number(self.rows[row][column]) for row in range(last)}
            known = {row: number for row, number in numbers.items() if number is not None}
            if len(set(known.values())) > 1:
                goal = (max if name in self.highest else min)(known.values())
                found |= {(row, column) for row, number in known.items() if number == goal}
        return frozenset(found)

    @property
    def groups(self) -> list[tuple[str, list[int]]]:
        """Heading of every group of rows, empty for the first, and the rows in it."""
        starts = [(0, ""), *self.breaks]
        ends = [row for row, _ in self.breaks] + [len(self.rows)]
        return [(heading, list(range(start, end))) for (start, heading), end in zip(starts, ends, strict=True)]

    @property
    def notes(self) -> str:
        """The note, and what bold means."""
        if not self.best:
            return self.note
        return f"{self.note} Bold: best of its column{' in the first group' if self.breaks else ''}, by however little.".strip()

    def markdown(self) -> str:
        """The table in Markdown, as GitHub reads it.

        Example:
            >>> print(Table("IoU", ("method", "IoU"), (("CE", "70.0"),)).markdown())
            **IoU**
            <BLANKLINE>
            | method | IoU |
            | --- | ---: |
            | CE | 70.0 |
            <BLANKLINE>
        """
        lines = [f"**{self.title}**", "", _bar(self.header), _bar(["---", *["---:"] * (len(self.header) - 1)])]
        for heading, rows in self.groups:
            if heading:
                lines.append(_bar([f"*{heading}*", *[""] * (len(self.header) - 1)]))
            lines += [_bar(self._marked(row, "**", "**")) for row in rows]
        return "\n".join([*lines, "", *([self.notes, ""] if self.notes else [])])

    def latex(self) -> str:
        """The table as a LaTeX ``table`` environment; needs no package."""
        body = []
        for heading, rows in self.groups:
            if heading:
                body += [r"\hline", rf"\emph{{{_latex(heading)}}}{' &' * (len(self.header) - 1)} \\"]
            for row in rows:
                cells = [_latex(cell) for cell in self.rows[row]]
                marked = [rf"\textbf{{{cell}}}" if (row, at) in self.best else cell for at, cell in enumerate(cells)]
                body.append(" & ".join(marked) + r" \\")
        return "\n".join(
            [
                r"\begin{table}[h]",
                r"\centering \small",
                rf"\caption{{{_latex(self.title)}.{' ' + _latex(self.notes) if self.notes else ''}}}",
                rf"\begin{{tabular}}{{|l|{'r' * (len(self.header) - 1)}|}}",
                r"\hline",
                " & ".join(map(_latex, self.header)) + r" \\",
                r"\hline",
                *body,
                r"\hline",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )

    def _marked(self, row: int, before: str, after: str) -> list[str]:
        best = self.best
        return [f"{before}{cell}{after}" if (row, at) in best else cell for at, cell in enumerate(self.rows[row])]


def _number(cell: str) -> float | None:
    if cell == "(reference)":
        return 0.0
    found = _NUMBER.match(cell)
    return float(found[0].replace("−", "-")) if found else None


def _bar(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
