"""All tasks side by side: where does the choice of the objective matter?"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..conclusions import overview_says
from ..results import Summary
from ..study import Study
from .canvas import add_header, group_colours, new_figure, tidy
from .rows import group_key, stacked


def overview_figure(
    study: Study, summaries: Sequence[Summary], foreground: Mapping[str, float] | None = None
) -> Any | None:
    """Paired differences to the study's first baseline with their intervals, one panel per task, all on the same axis.

    Args:
        study: of the summaries.
        summaries: of one protocol and decoder.
        foreground: task -> share of the foreground in the training voxels, where known; those with less follow further right.

    Returns:
        None for fewer than two tasks, or where the first baseline was not run.
    """
    first = next((name for name, entry in study.objectives.items() if entry.get("group") == "baseline"), None)
    shares = foreground or {}
    tasks = sorted(dict.fromkeys(summary.task for summary in summaries), key=lambda task: -shares.get(task, 0.0))
    found = {(summary.objective, summary.task): summary for summary in summaries}
    if first is None or len(tasks) < 2 or not any((first, task) in found for task in tasks):
        return None
    reference = study.label(first)
    most: dict[str, Summary] = {}
    for summary in summaries:
        if reference in summary.against:
            before = most.get(summary.objective)
            most[summary.objective] = max(before or summary, summary, key=lambda one: len(one.seeds))
    if not most:
        return None

    def mean(summary: Summary) -> float:
        against = [found[summary.objective, task].against for task in tasks if (summary.objective, task) in found]
        return float(np.mean([versus[reference].difference for versus in against if reference in versus]))

    rows = stacked(list(most.values()), mean)
    colours = group_colours(study.objectives)
    figure = new_figure(rows.height + 1.3)
    axes = figure.subplots(1, len(tasks), sharex=True, squeeze=False)[0]
    for number, (axis, task) in enumerate(zip(axes, tasks, strict=True)):
        for place, row in zip(rows.places, rows.summaries, strict=True):
            here = found.get((row.objective, task))
            versus = here.against.get(reference) if here is not None else None
            if versus is None:
                continue
            colour = colours[row.objective]
            axis.plot([100 * versus.low, 100 * versus.high], [place, place], color=colour, linewidth=1.4)
            axis.plot(100 * versus.difference, place, "o", color=colour, markersize=5)
        axis.axvline(0, color="black", linewidth=0.8)
        rows.prepare(axis, None if number else [study.label(row.objective) for row in rows.summaries])
        axis.set_title(_head(study, task, shares, first=found.get((first, task))), fontsize=8.5)
        tidy(axis)
    figure.supxlabel(f"points of foreground mIoU ahead of {reference}; lines: 95 % intervals", fontsize=9)
    says = overview_says(study, summaries, first, tasks)
    return add_header(figure, says, group_key(study, rows.summaries), columns=6)


def _head(study: Study, task: str, shares: Mapping[str, float], first: Summary | None) -> str:
    lines = [textwrap.fill(str(study.tasks[task].get("title", task)), 26)]
    if task in shares:
        lines.append(f"foreground {100 * shares[task]:.2g} %")
    if first is not None:
        lines.append(f"{study.label(first.objective)}: {100 * first.miou.mean():.1f} %")
    return "\n".join(lines)
