"""How long cross-entropy was trained before the comparison began, and whether its score stood still."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...palette import SERIES
from .canvas import new_figure


def pretraining_figure(histories: Mapping[str, Mapping[str, Sequence[float]]]) -> Any | None:
    """Validation mIoU of the pre-training, one curve per seed.

    Args:
        histories: seed -> history of its pre-training, as `History.to_dict` gives it.

    Returns:
        None where no history has a validation curve.
    """
    shown = {seed: history for seed, history in histories.items() if len(history["steps"]) > 1}
    if not shown:
        return None
    figure = new_figure(7.5, 3.4)
    axis = figure.subplots()
    for number, (seed, history) in enumerate(shown.items()):
        scores = [100 * score for score in history["validation_miou"]]
        colour = SERIES[number % len(SERIES)]
        axis.plot(history["steps"], scores, color=colour, marker="o", markersize=3, label=f"seed {seed}")
    axis.set(xlabel="step of cross-entropy", ylabel="validation mIoU, %")
    axis.set_ylim(bottom=0)
    axis.grid(alpha=0.25)
    figure.legend(loc="outside upper center", ncols=5, frameon=False, fontsize=9)
    return figure
