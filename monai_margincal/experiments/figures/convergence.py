"""Training and validation curves of one task, cross-entropy against the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...palette import BLACK, SERIES
from ..curves import Curve
from .canvas import add_header, legend_dot, new_figure, tidy

_MARKERS = "oDsv^P"


def convergence_figure(curves: Mapping[str, Sequence[Curve]]) -> Any | None:
    """Validation mIoU, training and validation loss, as means over the seeds; the spread of the seeds as lines at the end.

    Losses of different objectives have different scales, and controllers change them during training, so each is divided by its
    own final validation loss.

    Args:
        curves: what the key calls an objective -> the curve of every seed; those with a single point are left out.

    Returns:
        None where no objective has a curve.
    """
    shown = {label: [curve for curve in found if len(curve.steps) > 1] for label, found in curves.items()}
    shown = {label: found for label, found in shown.items() if found}
    if not shown:
        return None
    figure = new_figure(3.1)
    axes = figure.subplots(1, 3)
    handles, ends, spreads = [], {}, []
    for number, (label, found) in enumerate(shown.items()):
        colour, marker = SERIES[number % len(SERIES)], _MARKERS[number % len(_MARKERS)]
        steps = np.array(found[0].steps)
        miou = 100 * np.array([curve.validation_miou for curve in found])
        scale = np.array([curve.validation_loss[-1] for curve in found])[:, None]
        options: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 3.5, "linewidth": 1.3}
        axes[0].plot(steps, miou.mean(0), **options)
        for axis, name in ((axes[1], "training_loss"), (axes[2], "validation_loss")):
            losses = np.array([getattr(curve, name)[1:] for curve in found]) / scale
            axis.plot(steps[1:], losses.mean(0), **options)
        if len(found) > 1:
            # beside each other, as they would hide one another
            place = steps[-1] + (number + 1) * 0.045 * steps[-1]
            spread = miou[:, -1].std(ddof=1)
            middle = miou[:, -1].mean()
            axes[0].plot([place, place], [middle - spread, middle + spread], color=colour, linewidth=1.3)
            spreads.append(float(spread))
        handles.append(legend_dot(colour, f"{label}, {len(found)} seed{'s' if len(found) > 1 else ''}", marker))
        ends[label] = float(miou[:, -1].mean())
    axes[0].set_title("validation mIoU, %", fontsize=9.5)
    axes[1].set_title("training loss*", fontsize=9.5)
    axes[2].set_title("validation loss*", fontsize=9.5)
    low = min(axes[1].get_ylim()[0], axes[2].get_ylim()[0])
    high = max(axes[1].get_ylim()[1], axes[2].get_ylim()[1])
    for axis in axes:
        tidy(axis, "both")
    for axis in axes[1:]:
        axis.set_ylim(low - 0.03 * (high - low), high + 0.03 * (high - low))
    note = "step    (* as a share of the objective's last validation loss"
    note += "; upright lines: ± one standard deviation over the seeds)" if spreads else ")"
    figure.supxlabel(note, fontsize=8.5, color=BLACK)
    return add_header(figure, _says(ends, spreads), handles, columns=2)


def _says(ends: Mapping[str, float], spreads: Sequence[float]) -> str:
    first, last = max(ends, key=lambda label: ends[label]), min(ends, key=lambda label: ends[label])
    if len(ends) == 1:
        return f"{first} ends at a validation mIoU of {ends[first]:.2f} %."
    said = f"At the last step the validation mIoU lies between {ends[last]:.2f} % ({last}) and {ends[first]:.2f} % ({first})"
    if not spreads:
        return f"{said}; one seed, so the order is undecided."
    gap, spread = ends[first] - ends[last], float(np.mean(spreads))
    return f"{said}: {gap:.2f} points, {'less' if gap < spread else 'more'} than the seeds differ by (sd {spread:.2f})."
