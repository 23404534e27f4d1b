"""How far the true class's logit is ahead, before and after fine-tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...palette import SERIES
from ..evaluation import MARGIN_EDGES
from .canvas import new_figure


def margin_figure(histograms: Mapping[str, Sequence[Sequence[int]]], class_names: Sequence[str]) -> Any | None:
    """Histograms of the true class's margin over the test voxels, one panel per class.

    Args:
        histograms: label -> counts (C, bins) over `MARGIN_EDGES`.
        class_names: background first.
    """
    if not histograms:
        return None
    figure = new_figure(3.6 * len(class_names), 3.4)
    axes = figure.subplots(1, len(class_names), squeeze=False)[0]
    centres = (MARGIN_EDGES[:-1] + MARGIN_EDGES[1:]) / 2
    for k, (axis, name) in enumerate(zip(axes, class_names, strict=True)):
        for (label, counts), colour in zip(histograms.items(), SERIES, strict=False):
            shares = np.asarray(counts, dtype=float)[k]
            shares = shares / max(shares.sum(), 1)
            text = f"{label}: {100 * shares[centres < 0].sum():.1f} % wrong"
            # the outermost bins hold everything beyond them and are not drawn
            axis.step(centres[1:-1], 100 * shares[1:-1], where="mid", color=colour, linewidth=1.3, label=text)
        axis.axvline(0, color="black", linewidth=0.8)
        axis.set(title=name, xlabel="margin of the true class")
        axis.set_xlim(MARGIN_EDGES[0], MARGIN_EDGES[-1])
        inner = [
            100 * np.asarray(c, dtype=float)[k][1:-1].max() / max(np.sum(np.asarray(c)[k]), 1)
            for c in histograms.values()
        ]
        # room for the legend above the curves
        axis.set_ylim(0, (1.1 + 0.1 * len(histograms)) * max([*inner, 1e-9]))
        axis.grid(alpha=0.25)
        axis.legend(frameon=False, fontsize=7, loc="upper left")
    axes[0].set_ylabel("% of the class's voxels per bin")
    return figure
