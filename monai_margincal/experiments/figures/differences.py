"""Which objectives beat the best baseline, and by how much: dots with intervals; classes and decoders side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...palette import SERIES
from ..results import Summary
from ..study import Study
from .canvas import group_colour, new_figure


def difference_figure(study: Study, summaries: Sequence[Summary]) -> Any | None:
    """Paired difference to the best baseline with its interval, one dot per seed behind it.

    Args:
        study: of the summaries.
        summaries: of one task, protocol and decoder.
    """
    reference = next((summary for summary in summaries if summary.objective == summary.baseline), None)
    compared = [summary for summary in summaries if summary.comparison is not None]
    if reference is None or not compared:
        return None
    # as in the table: the best at the top, those with fewer seeds at the bottom
    compared.sort(key=lambda one: (len(one.seeds), one.comparison.difference if one.comparison else 0.0))
    by_seed = dict(zip(reference.seeds, reference.miou, strict=True))
    figure = new_figure(8, 0.3 * len(compared) + 1.4)
    axis = figure.subplots()
    groups = {}
    for row, summary in enumerate(compared):
        versus = summary.comparison
        if versus is None:
            continue
        group = study.objectives[summary.objective].get("group", "other")
        colour = group_colour(group)
        groups[group] = colour
        differences = [
            100 * (score - by_seed[seed])
            for seed, score in zip(summary.seeds, summary.miou, strict=True)
            if seed in by_seed
        ]
        axis.plot(differences, [row] * len(differences), "o", color=colour, alpha=0.3, markersize=4, markeredgewidth=0)
        low, high = 100 * versus.low, 100 * versus.high
        axis.plot([low, high], [row, row], color=colour, linewidth=1.6)
        axis.plot(100 * versus.difference, row, "D", color=colour, markersize=5.5)
    axis.axvline(0, color="black", linewidth=0.8)
    axis.set_yticks(range(len(compared)), [study.label(summary.objective) for summary in compared], fontsize=9)
    axis.set_xlabel(
        f"foreground mIoU minus that of {study.label(reference.objective)}, points\n95 % bootstrap interval"
    )
    axis.grid(axis="x", alpha=0.25)
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, marker="D", label=str(group)) for group, colour in groups.items()]
    handles.append(Line2D([], [], color="grey", marker="o", linestyle="", alpha=0.4, label="one seed"))
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False, fontsize=9)
    return figure


def class_figure(study: Study, summaries: Sequence[Summary], class_names: Sequence[str]) -> Any | None:
    """IoU of every foreground class, mean and standard deviation over the seeds.

    The axis does not start at 0, because the differences are small: read its numbers.
    """
    if not summaries:
        return None
    figure = new_figure(9, 0.3 * len(summaries) + 1.2)
    axes = figure.subplots(1, len(class_names) - 1, sharey=True, squeeze=False)[0]
    rows = np.arange(len(summaries))
    for axis, (k, name) in zip(axes, list(enumerate(class_names))[1:], strict=True):
        means = [100 * summary.per_class_iou[:, k].mean() for summary in summaries]
        spreads = [100 * np.std(s.per_class_iou[:, k], ddof=1) if len(s.seeds) > 1 else 0.0 for s in summaries]
        colours = [group_colour(study.objectives[summary.objective].get("group")) for summary in summaries]
        axis.barh(rows, means, xerr=spreads, color=colours, alpha=0.75, error_kw={"linewidth": 1})
        low = min(mean - spread for mean, spread in zip(means, spreads, strict=True))
        high = max(mean + spread for mean, spread in zip(means, spreads, strict=True))
        axis.set_xlim(max(0.0, low - 0.15 * (high - low) - 1), min(100.0, high + 1))
        axis.set(title=name, xlabel="IoU, %")
        axis.grid(axis="x", alpha=0.25)
    axes[0].set_yticks(rows, [study.label(summary.objective) for summary in summaries], fontsize=9)
    axes[0].invert_yaxis()
    return figure


def decoder_figure(study: Study, summaries: Sequence[Summary]) -> Any | None:
    """What each decoder gains over the first one, one dot per seed, a bar at the mean.

    Args:
        study: of the summaries.
        summaries: of one task and protocol, all decoders.
    """
    names = list(study.decoders)
    found: dict[str, dict[str, Summary]] = {}
    for summary in summaries:
        found.setdefault(summary.objective, {})[summary.decoder] = summary
    if len(names) < 2 or not found:
        return None
    figure = new_figure(8, 0.36 * len(found) + 1.4)
    axis = figure.subplots()
    rows = np.arange(len(found))
    for number, name in enumerate(names[1:]):
        colour = SERIES[number % len(SERIES)]
        shift = (number - (len(names) - 2) / 2) * 0.28
        for row, by_decoder in zip(rows, found.values(), strict=True):
            gains = 100 * (by_decoder[name].miou - by_decoder[names[0]].miou)
            axis.plot(gains, [row + shift] * len(gains), "o", color=colour, alpha=0.35, markersize=4, markeredgewidth=0)
            axis.plot(gains.mean(), row + shift, "|", color=colour, markersize=11, markeredgewidth=2.2)
        axis.plot([], [], "o", color=colour, label=name)
    axis.axvline(0, color="black", linewidth=0.8)
    axis.set_yticks(rows, [study.label(objective) for objective in found], fontsize=9)
    axis.invert_yaxis()
    axis.set_xlabel(f"foreground mIoU minus that of {names[0]}, points")
    axis.grid(axis="x", alpha=0.25)
    figure.legend(loc="outside upper center", ncols=len(names), frameon=False, fontsize=9)
    return figure
