"""All tasks side by side, those with rarer foreground further right: where does the choice of the objective matter?"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..results import Run, Summary
from ..scores import signed_points
from ..study import Study
from .canvas import group_colour, new_figure

#: difference at which the colour is fully saturated
_FULL = 0.05


def overview_figure(study: Study, runs: Sequence[Run], summaries: Sequence[Summary]) -> Any | None:
    """Paired difference to the study's first baseline, objectives by tasks; bold where the interval is on one side of 0.

    Args:
        study: of the summaries.
        runs: of the study; the training cases of a task say how rare its foreground is.
        summaries: of one protocol and decoder.

    Returns:
        None for fewer than two tasks, or where the first baseline was not run.
    """
    first = next((name for name, entry in study.objectives.items() if entry.get("group") == "baseline"), None)
    tasks = sorted({summary.task for summary in summaries}, key=lambda task: -_foreground_share(runs, task))
    found = {(summary.objective, summary.task): summary for summary in summaries}
    objectives = list(dict.fromkeys(summary.objective for summary in summaries))
    if first is None or len(tasks) < 2 or not any((first, task) in found for task in tasks):
        return None
    differences = np.full((len(objectives), len(tasks)), np.nan)
    bold = np.zeros(differences.shape, bool)
    for row, objective in enumerate(objectives):
        for column, task in enumerate(tasks):
            versus = found[objective, task].against.get(study.label(first)) if (objective, task) in found else None
            if versus is not None:
                differences[row, column] = versus.difference
                bold[row, column] = versus.low > 0 or versus.high < 0
    compared = np.flatnonzero(np.isfinite(differences).any(1))
    order = compared[np.argsort(-np.nanmean(differences[compared], 1), kind="stable")]
    figure = new_figure(3.2 + 1.7 * len(tasks), 0.3 * len(order) + 1.6)
    axis = figure.subplots()
    axis.imshow(differences[order], cmap="RdBu", vmin=-_FULL, vmax=_FULL, aspect="auto")
    for place, row in enumerate(order):
        for column, value in enumerate(differences[row]):
            if np.isfinite(value):
                dark = abs(value) > 0.6 * _FULL
                axis.text(
                    column, place, signed_points(value), ha="center", va="center", fontsize=9,
                    color="white" if dark else "black", fontweight="bold" if bold[row, column] else "normal",
                )  # fmt: skip
    axis.set_yticks(range(len(order)), [study.label(objectives[row]) for row in order], fontsize=9)
    for tick, row in zip(axis.get_yticklabels(), order, strict=True):
        tick.set_color(group_colour(study.objectives[objectives[row]].get("group")))
    heads = []
    for task in tasks:
        title = textwrap.fill(str(study.tasks[task].get("title", task)), 20)
        score = found[first, task].miou.mean() if (first, task) in found else float("nan")
        heads.append(
            f"{title}\nforeground {100 * _foreground_share(runs, task):.2g} %\n{study.label(first)} {100 * score:.1f}"
        )
    axis.xaxis.tick_top()
    axis.set_xticks(range(len(tasks)), heads, fontsize=8)
    axis.tick_params(length=0)
    axis.set_xlabel(
        f"foreground mIoU minus that of {study.label(first)}, points; bold: 95 % interval without 0", fontsize=9
    )
    return figure


def _foreground_share(runs: Sequence[Run], task: str) -> float:
    """Share of the foreground in the training voxels, mean over the runs."""
    counts = [np.asarray(run.record["training_counts"], float) for run in runs if run.cell.task == task]
    return float(np.mean([count[1:].sum() / count.sum() for count in counts])) if counts else 0.0
