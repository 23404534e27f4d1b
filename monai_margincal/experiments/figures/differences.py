"""Which objectives beat the best baseline, and by how much: dots with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...palette import GREY
from ..conclusions import differences_say
from ..results import Summary
from ..study import Study
from .canvas import add_header, group_colours, legend_dot, new_figure, tidy
from .rows import group_key, stacked


def difference_figure(study: Study, summaries: Sequence[Summary]) -> Any | None:
    """Paired difference to the best baseline with its interval, one dot per seed behind it.

    Args:
        study: of the summaries.
        summaries: of one task, protocol and decoder.

    Returns:
        None where there is no baseline, or nothing to compare with it.
    """
    reference = next((summary for summary in summaries if summary.objective == summary.baseline), None)
    compared = [summary for summary in summaries if summary.comparison is not None]
    if reference is None or not compared:
        return None
    by_seed = dict(zip(reference.seeds, reference.miou, strict=True))
    colours = group_colours(study.objectives)
    rows = stacked(
        compared,
        lambda summary: summary.comparison.difference if summary.comparison else 0.0,
        lambda summary: len(by_seed.keys() & summary.seeds),
    )
    figure = new_figure(rows.height + 0.7)
    axis = figure.subplots()
    for place, summary in zip(rows.places, rows.summaries, strict=True):
        versus, colour = summary.comparison, colours[summary.objective]
        if versus is None:
            continue
        differences = [
            100 * (score - by_seed[seed])
            for seed, score in zip(summary.seeds, summary.miou, strict=True)
            if seed in by_seed
        ]
        axis.plot(differences, [place] * len(differences), "|", color=colour, alpha=0.45, markersize=6)
        axis.plot([100 * versus.low, 100 * versus.high], [place, place], color=colour, linewidth=1.6)
        axis.plot(100 * versus.difference, place, "o", color=colour, markersize=6)
    axis.axvline(0, color="black", linewidth=0.8)
    rows.prepare(axis, [study.label(summary.objective) for summary in rows.summaries])
    axis.set_xlabel(f"points of foreground mIoU ahead of {study.label(reference.objective)}", fontsize=9)
    tidy(axis)
    handles = group_key(study, rows.summaries)
    if len(by_seed) > 1:
        handles.append(legend_dot(GREY, "one seed", "|", alpha=0.6))
    handles.append(_interval_key())
    return add_header(figure, differences_say(study, summaries), handles, columns=7)


def _interval_key() -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=GREY, linewidth=1.6, label="95 % interval")
