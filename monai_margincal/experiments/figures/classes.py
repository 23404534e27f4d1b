"""IoU of every class, objective by objective."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..conclusions import classes_say
from ..results import Summary
from ..study import Study
from .canvas import add_header, group_colours, new_figure, tidy
from .rows import group_key, stacked


def class_figure(study: Study, summaries: Sequence[Summary], class_names: Sequence[str]) -> Any | None:
    """IoU of every foreground class: dots at the mean over the seeds, lines of one standard deviation to both sides.

    Dots and not bars: the differences are small, so the axes do not begin at 0. All classes have axes of the same length.

    Args:
        study: of the summaries.
        summaries: of one task, protocol and decoder.
        class_names: background first.
    """
    if not summaries:
        return None
    colours = group_colours(study.objectives)
    rows = stacked(summaries, lambda summary: float(summary.miou.mean()))
    figure = new_figure(rows.height + 0.9)
    axes = figure.subplots(1, len(class_names) - 1, squeeze=False)[0]
    limits = []
    for number, (axis, name) in enumerate(zip(axes, class_names[1:], strict=True)):
        lows, highs = [], []
        for place, summary in zip(rows.places, rows.summaries, strict=True):
            scores, colour = 100 * summary.per_class_iou[:, number + 1], colours[summary.objective]
            mean, spread = scores.mean(), scores.std(ddof=1) if len(scores) > 1 else 0.0
            axis.plot([mean - spread, mean + spread], [place, place], color=colour, linewidth=1.2, alpha=0.6)
            axis.plot(mean, place, "o", color=colour, markersize=5.5)
            lows.append(mean - spread)
            highs.append(mean + spread)
        limits.append((min(lows), max(highs)))
        rows.prepare(axis, None if number else [study.label(summary.objective) for summary in rows.summaries])
        axis.set_title(name, fontsize=9.5)
        axis.set_xlabel("IoU, %", fontsize=9)
        tidy(axis)
    reach = 1.08 * max(high - low for low, high in limits) + 0.2
    for axis, (low, high) in zip(axes, limits, strict=True):
        middle = np.clip((low + high) / 2, reach / 2 - 1, max(101 - reach / 2, reach / 2 - 1))
        axis.set_xlim(middle - reach / 2, middle + reach / 2)
    return add_header(figure, classes_say(study, summaries, class_names), group_key(study, rows.summaries), columns=6)
