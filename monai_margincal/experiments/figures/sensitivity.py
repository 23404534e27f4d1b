"""How much (tau, upsilon) matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...palette import BLUE, GREY, ORANGE
from ..conclusions import sensitivity_says
from ..results import Summary, on_common_seeds
from ..study import Study
from .canvas import add_header, legend_dot, new_figure, tidy


def sensitivity_figure(study: Study, summaries: Sequence[Summary]) -> Any | None:
    """Foreground mIoU on validation and test cases per setting, one dot per seed; settings are objectives with ``tau_upsilon``.

    All are shown over the seeds that they have in common.

    Args:
        study: of the summaries.
        summaries: of one task, protocol and decoder.
    """
    chosen = [s for s in summaries if study.objectives[s.objective].get("tau_upsilon")]
    if len(chosen) < 2:
        return None
    baseline = next((s for s in summaries if s.objective == s.baseline), None)
    together = on_common_seeds(chosen if baseline is None else [*chosen, baseline])
    if not together:
        return None
    chosen, reference = together[: len(chosen)], together[-1] if baseline is not None else None
    chosen.sort(key=lambda s: study.objectives[s.objective]["tau_upsilon"])
    from matplotlib.lines import Line2D

    figure = new_figure(3.3)
    axis = figure.subplots()
    handles = []
    for shift, (name, attribute, colour) in zip(
        (-0.13, 0.13), (("validation", "validation_miou", ORANGE), ("test", "miou", BLUE)), strict=True
    ):
        for place, summary in enumerate(chosen):
            scores = 100 * getattr(summary, attribute)
            axis.plot([place + shift] * len(scores), scores, "_", color=colour, alpha=0.6, markersize=7)
            axis.plot(place + shift, scores.mean(), "o" if name == "test" else "D", color=colour, markersize=6)
        handles.append(legend_dot(colour, f"{name}: mean", "o" if name == "test" else "D"))
        if reference is not None:
            mean = 100 * float(np.mean(getattr(reference, attribute)))
            label = f"{name}: {study.label(reference.objective)}"
            axis.axhline(mean, color=colour, linestyle=":")
            handles.append(Line2D([], [], color=colour, linestyle=":", label=label))
    handles.append(legend_dot(GREY, "one seed", "_", alpha=0.6))
    labels = []
    for summary in chosen:
        tau, upsilon = study.objectives[summary.objective]["tau_upsilon"]
        labels.append(f"τ {tau:g}\nυ {upsilon:g}\n{study.label(summary.objective).split(':')[0]}")
    axis.set_xticks(range(len(chosen)), labels)
    axis.set_xlim(-0.6, len(chosen) - 0.4)
    axis.set_ylabel("foreground mIoU, %", fontsize=9)
    tidy(axis, "y")
    return add_header(figure, sensitivity_says(study, chosen, reference), handles, columns=2)
