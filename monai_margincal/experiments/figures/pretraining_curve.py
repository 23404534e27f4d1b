"""How long cross-entropy was trained before the comparison began, and whether its score stood still."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...palette import SERIES
from ..curves import Curve
from .canvas import add_header, legend_dot, new_figure, tidy

#: points at the end whose rise is named
_LAST = 3


def pretraining_figure(curves: Sequence[Curve]) -> Any | None:
    """Validation mIoU of the pre-training, one curve per seed.

    Args:
        curves: one per seed; those with a single point are left out.

    Returns:
        None where there is no curve.
    """
    shown = [curve for curve in curves if len(curve.steps) > 1]
    if not shown:
        return None
    figure = new_figure(2.9)
    axis = figure.subplots()
    handles = []
    for number, curve in enumerate(shown):
        colour, marker = SERIES[number % len(SERIES)], "oDsv^P"[number % 6]
        scores = [100 * score for score in curve.validation_miou]
        axis.plot(curve.steps, scores, color=colour, marker=marker, markersize=4)
        handles.append(legend_dot(colour, f"seed {curve.seed}", marker))
    axis.set_xlabel("step of cross-entropy", fontsize=9)
    axis.set_ylabel("validation mIoU, %", fontsize=9)
    axis.set_ylim(bottom=0)
    tidy(axis, "both")
    said = [_end(curve) for curve in shown]
    many = len(said) > 3
    text = "; ".join(said[:3]) + (f"; {len(said) - 3} more seeds" if many else "")
    return add_header(figure, f"Validation mIoU of cross-entropy: {text}.", handles, columns=8)


def _end(curve: Curve) -> str:
    scores = [100 * score for score in curve.validation_miou]
    text = f"seed {curve.seed} ends at {scores[-1]:.1f} % after {curve.steps[-1]:,} steps"
    if len(scores) > _LAST:
        rise = max(scores[-_LAST:]) - max(scores[:-_LAST])
        text += f", {rise:.1f} points above all but the last {_LAST} points" if rise > 0 else ", no longer rising"
    return text
