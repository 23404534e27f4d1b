"""The regret of every recipe: one dot per task, the worst one marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...palette import BLACK, GREY, SERIES
from ..regret import RegretRow
from .canvas import new_figure

#: rows that stay readable on one page
_ROWS = 24

_MARKERS = "osD^vP*X<>"


def regret_figure(rows: Sequence[RegretRow]) -> Any | None:
    """Points behind the best baseline pair of each task; the smallest worst case at the top.

    Args:
        rows: from `regret_rows`; shown are those that were run in as many tasks as the first one, and of these the first 24.

    Returns:
        None where there is no row.
    """
    shown = [row for row in rows if len(row.tasks) == len(rows[0].tasks)][:_ROWS] if rows else []
    if not shown:
        return None
    tasks = list(dict.fromkeys(task for row in rows for task in row.tasks))
    figure = new_figure(7.54, 0.29 * len(shown) + 1.9)
    axis = figure.subplots()
    for number, task in enumerate(tasks):
        places = [place for place, row in enumerate(shown) if task in row.tasks]
        values = [100 * shown[place].tasks[task].chosen_here.value for place in places]
        colour, marker = SERIES[number % len(SERIES)], _MARKERS[number % len(_MARKERS)]
        axis.plot(values, places, marker, color=colour, markersize=5, alpha=0.8, markeredgewidth=0, label=task)
    for place, row in enumerate(shown):
        worst = row.worst.chosen_here
        axis.plot(100 * worst.value, place, "o", markersize=11, markerfacecolor="none", markeredgecolor=BLACK)
        if np.isfinite(worst.low):  # it may reach beyond the figure: the table has its ends
            axis.plot([100 * worst.low, 100 * worst.high], [place, place], color=BLACK, linewidth=0.9, alpha=0.7)
    axis.plot([], [], "o", markersize=9, markerfacecolor="none", markeredgecolor=BLACK, label="worst case, 95 %")
    # most recipes are within a point of each other, and some are 20 away
    axis.set_xscale("symlog", linthresh=1.0, linscale=1.5)
    values = [100 * regret.chosen_here.value for row in shown for regret in row.tasks.values()]
    least, most = min(values), max(values)
    axis.set_xlim(least - 0.15 * (1 + abs(least)), most + 0.3 * (1 + abs(most)))
    ticks = [tick for tick in (-5, -2, -1, -0.5, 0, 0.5, 1, 2, 5, 10, 20, 50) if least <= tick <= max(most, 1.0)]
    axis.set_xticks(ticks, [f"{tick:g}".replace("-", "−") for tick in ticks])
    axis.minorticks_off()
    axis.axvline(0, color="black", linewidth=0.8)
    axis.set_yticks(range(len(shown)), [row.label for row in shown], fontsize=8.5)
    for tick, row in zip(axis.get_yticklabels(), shown, strict=True):
        tick.set_color(GREY if row.is_baseline else "black")
    axis.invert_yaxis()
    axis.set_xlabel("points of foreground mIoU behind the best baseline pair\ngrey names: baselines", fontsize=9)
    axis.grid(axis="x", alpha=0.25)
    figure.legend(loc="outside upper center", ncols=4, frameon=False, fontsize=8.5)
    return figure
