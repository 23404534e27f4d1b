"""What a decoder gains over the first one, which costs no training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...palette import GREY, SERIES
from ..conclusions import decoder_gains, decoders_say
from ..results import Summary
from ..study import Study
from .canvas import add_header, legend_dot, new_figure, tidy
from .rows import stacked


def decoder_figure(study: Study, summaries: Sequence[Summary]) -> Any | None:
    """What each decoder gains over the first one: one stroke per seed, a dot at the mean.

    Args:
        study: of the summaries.
        summaries: of one task and protocol, all decoders.

    Returns:
        None for fewer than two decoders.
    """
    gains = decoder_gains(summaries)
    if not gains:
        return None
    first = summaries[0].decoder
    plain = [summary for summary in summaries if summary.decoder == first and (summary.objective in gains)]
    rows = stacked(plain, lambda summary: max(float(values.mean()) for values in gains[summary.objective].values()))
    names = list(dict.fromkeys(name for by_decoder in gains.values() for name in by_decoder))
    figure = new_figure(1.35 * rows.height + 0.7)
    axis = figure.subplots()
    handles = []
    for number, name in enumerate(names):
        colour, marker = SERIES[number % len(SERIES)], "oDsv^P"[number % 6]
        shift = (number - (len(names) - 1) / 2) * 0.42
        for place, summary in zip(rows.places, rows.summaries, strict=True):
            values = gains[summary.objective].get(name)
            if values is None:
                continue
            axis.plot(values, [place + shift] * len(values), "|", color=colour, alpha=0.5, markersize=6)
            axis.plot([values.min(), values.max()], [place + shift] * 2, color=colour, linewidth=0.8, alpha=0.5)
            axis.plot(values.mean(), place + shift, marker, color=colour, markersize=5)
        handles.append(legend_dot(colour, f"{name}: mean", marker))
    handles.append(legend_dot(GREY, "one seed", "|", alpha=0.6))
    axis.axvline(0, color="black", linewidth=0.8)
    rows.prepare(axis, [study.label(summary.objective) for summary in rows.summaries])
    axis.set_xlabel(f"points of foreground mIoU ahead of {first}", fontsize=9)
    tidy(axis)
    return add_header(figure, decoders_say(study, summaries), handles, columns=6)
