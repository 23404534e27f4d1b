"""How much (tau, upsilon) matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...palette import BLUE, ORANGE
from ..results import Summary, on_common_seeds
from ..study import Study
from .canvas import new_figure


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
    reference = next((s for s in summaries if s.objective == s.baseline), None)
    together = on_common_seeds(chosen if reference is None else [*chosen, reference])
    if not together:
        return None
    chosen, reference = together[: len(chosen)], together[-1] if reference is not None else None
    chosen.sort(key=lambda s: study.objectives[s.objective]["tau_upsilon"])
    figure = new_figure(max(6.0, 0.85 * len(chosen) + 1.5), 3.8)
    axis = figure.subplots()
    for shift, (name, attribute) in zip(
        (-0.12, 0.12), (("validation", "validation_miou"), ("test", "miou")), strict=True
    ):
        colour = BLUE if name == "test" else ORANGE
        for place, summary in enumerate(chosen):
            scores = 100 * getattr(summary, attribute)
            axis.plot(
                [place + shift] * len(scores), scores, "o", color=colour, alpha=0.35, markersize=4, markeredgewidth=0
            )
            axis.plot(place + shift, scores.mean(), "_", color=colour, markersize=13, markeredgewidth=2.2)
        axis.plot([], [], "o", color=colour, label=name)
        if reference is not None:
            mean = 100 * float(np.mean(getattr(reference, attribute)))
            axis.axhline(mean, color=colour, linestyle=":", label=f"{name}, {study.label(reference.objective)}")
    labels = []
    for summary in chosen:
        tau, upsilon = study.objectives[summary.objective]["tau_upsilon"]
        labels.append(f"τ {tau:g}\nυ {upsilon:g}\n{study.label(summary.objective).split(':')[0]}")
    axis.set_xticks(range(len(chosen)), labels, fontsize=8)
    axis.set_ylabel("foreground mIoU, %")
    axis.grid(axis="y", alpha=0.25)
    figure.legend(loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    return figure
