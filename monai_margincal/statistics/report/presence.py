"""Which class occurs in which case: a list of the exceptions, and a map of the classes that have too many for a list."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from ...pages.numbers import readable_share
from ...pages.svg import along, drawing, element
from .axes import cut

#: A class that is missing or not annotated in at most this many cases has them listed; another one gets a row of the map.
MOST_LISTED = 10
#: a row of the map: its name, the cells below it
_ROW, _CELLS_TOP, _CELLS_HEIGHT = 40, 20, 16
_LABEL_LETTERS = 40


@dataclass(frozen=True)
class Exceptions:
    """Where a class does not occur.

    Attributes:
        label: name of the class.
        absent: cases that were annotated and do not have it.
        unknown: cases in which it was not annotated.
        shares: per case its share of the case's voxels; 0 where absent, None where not annotated.
    """

    label: str
    absent: tuple[str, ...]
    unknown: tuple[str, ...]
    shares: tuple[float | None, ...]

    @property
    def are_listed(self) -> bool:
        """Whether they are few enough to be read as a list."""
        return len(self.absent) + len(self.unknown) <= MOST_LISTED


def exceptions(data: dict[str, Any]) -> list[Exceptions]:
    """Where each class of what `report_data` gives does not occur, in the order of the classes; cases by their names.

    Example:
        >>> from monai_margincal.statistics.report import report_data
        >>> from monai_margincal import ClassCounts
        >>> counts = ClassCounts([9, 1], cases={"a": [4, 1], "b": [5, 0]})
        >>> [(found.label, found.absent) for found in exceptions(report_data(counts))]
        [('0', ()), ('1', ('b',))]
    """
    cases = data["cases"]
    names = sorted(cases)
    found = []
    for place, row in enumerate(data["classes"]):
        shares: list[float | None] = []
        for name in names:
            counts, annotated = cases[name]["counts"], cases[name]["annotated"]
            unknown = annotated is not None and row["id"] not in annotated
            shares.append(None if unknown else counts[place] / max(sum(counts), 1))
        absent = tuple(name for name, share in zip(names, shares, strict=True) if share == 0)
        unknown_in = tuple(name for name, share in zip(names, shares, strict=True) if share is None)
        found.append(Exceptions(row["label"], absent, unknown_in, tuple(shares)))
    return found


def presence_map(rows: Sequence[Exceptions], cases: Sequence[str], most_columns: int = 100) -> Markup:
    """Classes as rows, cases as columns: the larger the class is in the case, the darker; hatched where nobody drew it.

    Args:
        rows: the classes.
        cases: case names, in the order of the rows' shares.
        most_columns: with more cases, neighbours share a column, filled as high as the share of them that has the class.
    """
    groups = _groups(len(cases), most_columns)
    stripe = element("rect", class_="hatch", width=1.5, height=4)
    tile: dict[str, Any] = {"width": 4, "height": 4, "patternUnits": "userSpaceOnUse", "patternTransform": "rotate(45)"}
    parts = [element("defs", element("pattern", stripe, id="hatch", **tile))]
    for number, row in enumerate(rows):
        top = number * _ROW
        name = element("text", cut(row.label, _LABEL_LETTERS), element("title", row.label), x=0, y=top + 15)
        parts.append(name)
        largest = max((share for share in row.shares if share), default=0.0)
        for column, (first, last) in enumerate(groups):
            known = [share for share in row.shares[first:last] if share is not None]
            having = [share for share in known if share > 0]
            place = cases[first] if last - first == 1 else f"{cases[first]} ... {cases[last - 1]}"
            tip = element("title", f"{place}, {row.label}: {_in_words(known, having, last - first)}")
            across = {"x": along(column / len(groups)), "width": along(0.94 / len(groups))}
            kind = "absent" if known else "unknown"
            cell = [element("rect", class_=kind, y=top + _CELLS_TOP, height=_CELLS_HEIGHT, **across)]
            if having:
                # shares five decades below the largest are still visible
                depth = max(0.0, 1 + math.log10(sum(having) / len(having) / largest) / 5)
                height = _CELLS_HEIGHT * len(having) / len(known)
                filled = {"class_": "main", "fill_opacity": f"{0.2 + 0.8 * depth:.2f}"}
                cell.append(
                    element("rect", y=top + _CELLS_TOP + _CELLS_HEIGHT - height, height=height, **filled, **across)
                )
            parts.append(element("g", tip, *cell))
    note = f"{len(cases)} cases by name"
    if len(groups) < len(cases):
        note += f", about {len(cases) / len(groups):.0f} to a column"
    parts.append(element("text", note, class_="tick", x=0, y=len(rows) * _ROW + 16))
    return drawing(len(rows) * _ROW + 24, parts, "Which class occurs in which case")


def _in_words(known: Sequence[float], having: Sequence[float], cases: int) -> str:
    if not known:
        return "not annotated"
    if not having:
        return "absent"
    mean = readable_share(sum(having) / len(having))
    return mean if cases == 1 else f"in {len(having)} of {len(known)} cases, {mean} there"


def _groups(count: int, most: int) -> list[tuple[int, int]]:
    columns = min(count, most)
    return [(column * count // columns, (column + 1) * count // columns) for column in range(columns)]
