"""The regret of every recipe: one dot per task, the worst one marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...palette import BLACK, GREY, SERIES
from ..conclusions import first_letter, in_points
from ..regret import RegretRow
from .canvas import add_header, legend_dot, new_figure, tidy

#: rows that stay readable on one page
_ROWS = 24

_MARKERS = "osD^vP*X<>"


def regret_figure(rows: Sequence[RegretRow]) -> Any | None:
    """Points behind the best baseline pair of each task; the smallest worst case at the top.

    Args:
        rows: from `regret_rows`; shown are those that were run in as many tasks as the first one, and of these the first 24.
            Decoders that decide alike in every task, as offsets do where none was kept, share a row.

    Returns:
        None where there is no row.
    """
    shown = _of_all_tasks(rows)[:_ROWS]
    if not shown:
        return None
    tasks = list(dict.fromkeys(task for row in rows for task in row.tasks))
    figure = new_figure(0.25 * len(shown) + 0.85)
    axis = figure.subplots()
    handles = []
    for number, task in enumerate(tasks):
        places = [place for place, row in enumerate(shown) if task in row.tasks]
        values = [100 * shown[place].tasks[task].chosen_here.value for place in places]
        colour, marker = SERIES[number % len(SERIES)], _MARKERS[number % len(_MARKERS)]
        axis.plot(values, places, marker, color=colour, markersize=5, markeredgewidth=0)
        handles.append(legend_dot(colour, task, marker))
    values = [100 * regret.chosen_here.value for row in shown for regret in row.tasks.values()]
    least, most = min(values), max(values)
    ends = (least - 0.15 * (1 + abs(least)), most + 0.3 * (1 + abs(most)))
    for place, row in enumerate(shown):
        worst = row.worst.chosen_here
        axis.plot(100 * worst.value, place, "o", markersize=10, markerfacecolor="none", markeredgecolor=BLACK)
        if np.isfinite(worst.low):  # it may reach beyond the figure: the table has its ends
            axis.plot([100 * worst.low, 100 * worst.high], [place, place], color=BLACK, linewidth=0.9, alpha=0.7)
    handles.append(legend_dot(BLACK, "worst case, 95 % interval", markersize=9, markerfacecolor="none"))
    # most recipes are within a point of each other, and some are 20 away
    axis.set_xscale("symlog", linthresh=1.0, linscale=1.5)
    axis.set_xlim(*ends)
    ticks = [tick for tick in (-5, -2, -1, -0.5, 0, 0.5, 1, 2, 5, 10, 20, 50) if least <= tick <= max(most, 1.0)]
    axis.set_xticks(ticks, [f"{tick:g}".replace("-", "−") for tick in ticks])
    axis.minorticks_off()
    axis.axvline(0, color="black", linewidth=0.8)
    axis.set_yticks(range(len(shown)), [row.label for row in shown])
    tidy(axis)
    axis.tick_params(axis="y", length=0)
    for tick, row in zip(axis.get_yticklabels(), shown, strict=True):
        tick.set_color(GREY if row.is_baseline else "black")
    axis.set_ylim(len(shown) - 0.4, -0.6)
    axis.set_xlabel(
        "points of foreground mIoU behind the task's best baseline pair\n"
        "linear up to 1, then logarithmic; grey names: baselines",
        fontsize=8.5,
    )
    return add_header(figure, regret_says(rows), handles, columns=7)


def regret_says(rows: Sequence[RegretRow]) -> str:
    """Which recipe has the smallest worst case, and whether the next one is farther away for certain.

    Args:
        rows: from `regret_rows`, at least one; those that were run in fewer tasks than the first one are left out.
    """
    rows = _of_all_tasks(rows)
    first = rows[0]
    count = len(first.tasks)
    never, tasks = ("", "of this task") if count == 1 else ("never more than ", f"in any of the {count} tasks")
    said = f"{first_letter(first.label)} is {never}{_worst(first)} points behind the best baseline pair {tasks}."
    if len(rows) == 1:
        return said
    here, next_one = first.worst.chosen_here, rows[1].worst.chosen_here
    apart = next_one.low > here.high
    said += f" Next: {rows[1].label}, {_worst(rows[1])}"
    return f"{said}." if apart else f"{said}; the intervals overlap, so the order is undecided."


def _of_all_tasks(rows: Sequence[RegretRow]) -> list[RegretRow]:
    """Those that were run in as many tasks as the first one; the decoders of an objective that differ nowhere as one row."""
    found: dict[tuple[str, tuple[float, ...]], RegretRow] = {}
    for row in rows:
        if len(row.tasks) != len(rows[0].tasks):
            continue
        key = row.pair[0], tuple(row.tasks[task].chosen_here.value for task in sorted(row.tasks))
        same = found.get(key)
        found[key] = row if same is None else replace(same, label=f"{same.label} or {row.pair[1]}")
    return list(found.values())


def _worst(row: RegretRow) -> str:
    worst = row.worst.chosen_here
    return in_points(worst.value, worst.low, worst.high)
