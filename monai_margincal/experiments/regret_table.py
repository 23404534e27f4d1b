"""Regret as a table: the worst case of every recipe, and its regret in each task."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .regret import Regret, RegretRow
from .scores import signed_points
from .table_form import Table

__all__ = ["regret_table"]

_ELSEWHERE = "worst case, reference of other folds or seeds [95 %]"


def regret_table(rows: Sequence[RegretRow], where: str, with_cases: bool) -> Table:
    """One row per recipe, in the order of ``rows``.

    Args:
        rows: from `regret_rows`.
        where: what they have in common, for the title.
        with_cases: the intervals are over seeds and test cases, not over seeds alone.
    """
    tasks = list(dict.fromkeys(task for row in rows for task in row.tasks))
    cells = []
    for row in rows:
        other = row.worst_elsewhere
        cells.append(
            (
                row.label,
                f"{len(row.tasks)} of {len(tasks)}",
                f"{_points(row.worst.chosen_here)}, {row.worst.task}",
                f"{_points(other.chosen_elsewhere)}, {other.task}"
                if other is not None and other.chosen_elsewhere is not None
                else "–",
                *(_both(row, task) for task in tasks),
            )
        )
    seeds = sorted({len(regret.seeds) for row in rows for regret in row.tasks.values()})
    # means over fewer seeds are over other training cases: nothing to be the best of
    seeds_of_first = {
        len(regret.seeds) for row in rows if len(row.tasks) == len(rows[0].tasks) for regret in row.tasks.values()
    }
    said = (
        f"{seeds[0]} to {seeds[-1]} seeds" if len(seeds) > 1 else "one seed" if seeds == [1] else f"{sum(seeds)} seeds"
    )
    return Table(
        f"Regret: how far every recipe is from the best baseline pair of a task, {where}",
        ("objective, decoder", "tasks", "worst case [95 %]", _ELSEWHERE, *tasks),
        tuple(cells),
        "Points of foreground mIoU behind a baseline pair (objective, decoder), paired by seed; below 0 ahead of it. Worst case, "
        "and the first number of a task: behind the pair that is best on these test cases, which flatters it. Reference of "
        "other folds or seeds, and the number after the stroke: the cases of every fold behind the pair that is best on those of "
        "the other folds; without folds, every seed behind the pair that is best over the other seeds. Interval: "
        f"bootstrap over seeds{' and test cases' if with_cases else ''}; {said}. Only recipes that were run in the same "
        "tasks can be compared.",
        lowest=("worst case [95 %]", _ELSEWHERE, *tasks) if len(seeds_of_first) == 1 else (),
        breaks=tuple(
            (place, f"run in {len(row.tasks)} of {len(tasks)} tasks")
            for place, row in enumerate(rows)
            if place and len(row.tasks) != len(rows[place - 1].tasks)
        ),
    )


def _points(regret: Regret) -> str:
    text = signed_points(regret.value)
    if math.isnan(regret.low):
        return text
    return f"{text} [{signed_points(regret.low)}, {signed_points(regret.high)}]"


def _both(row: RegretRow, task: str) -> str:
    if task not in row.tasks:
        return "–"
    here, elsewhere = row.tasks[task].chosen_here, row.tasks[task].chosen_elsewhere
    return f"{signed_points(here.value)} / {'–' if elsewhere is None else signed_points(elsewhere.value)}"
