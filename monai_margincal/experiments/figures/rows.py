"""Objectives as rows of a figure: those with fewer seeds apart, since their means are over other training sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...palette import GREY
from ..results import Summary
from ..study import Study
from .canvas import group_colours, legend_dot

__all__ = ["Rows", "group_key", "stacked"]

#: of a row, in inches
ROW = 0.235


@dataclass(frozen=True)
class Rows:
    """Where the rows of a figure lie, from the top.

    Attributes:
        summaries: in the order of the rows.
        places: of each along y.
        breaks: where a line stands, and what stands on it.
    """

    summaries: tuple[Summary, ...]
    places: tuple[float, ...]
    breaks: tuple[tuple[float, str], ...]

    @property
    def height(self) -> float:
        """Of all rows, in inches."""
        return ROW * (self.places[-1] + 1)

    def prepare(self, axis: Any, labels: Sequence[str] | None) -> None:
        """Set the ticks of an axis along y and draw the lines between rows.

        Args:
            axis: of matplotlib.
            labels: names of the rows; None leaves the axis without, and the lines without their text.
        """
        axis.set_ylim(self.places[-1] + 0.8, -0.8)
        axis.set_yticks(self.places, labels or [""] * len(self.places), fontsize=8.5)
        axis.tick_params(axis="y", length=0)
        for place, text in self.breaks:
            axis.axhline(place, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)))
            if labels:
                # on the side of the names, where there are no data
                axis.annotate(
                    text, (0, place), (-6, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
                    ha="right", va="center", fontsize=8.5, fontstyle="italic", color=GREY,
                )  # fmt: skip


def stacked(
    summaries: Sequence[Summary],
    value: Callable[[Summary], float],
    seeds: Callable[[Summary], int] = lambda summary: len(summary.seeds),
) -> Rows:
    """The rows in blocks of the same number of seeds, the one with most at the top; within a block the largest value first.

    Args:
        summaries: at least one.
        value: what the rows are sorted by.
        seeds: how many seeds a row is made of.
    """
    ordered = sorted(summaries, key=lambda summary: (-seeds(summary), -value(summary)))
    places, breaks = [], []
    place, before = -1.0, seeds(ordered[0])
    for summary in ordered:
        place += 1
        if seeds(summary) != before:
            before = seeds(summary)
            breaks.append((place, "one seed only" if before == 1 else f"{before} seeds only"))
            place += 1
        places.append(place)
    return Rows(tuple(ordered), tuple(places), tuple(breaks))


def group_key(study: Study, summaries: Sequence[Summary], marker: str = "o") -> list[Any]:
    """Entries of the key for the groups of these objectives."""
    colours = group_colours(study.objectives)
    groups = {
        str(study.objectives[summary.objective].get("group", "other")): colours[summary.objective]
        for summary in summaries
    }
    return [legend_dot(colour, group, marker) for group, colour in groups.items()]
