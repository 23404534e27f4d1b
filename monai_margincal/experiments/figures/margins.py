"""How far the true class's logit is ahead, before and after fine-tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...palette import BLACK, SERIES
from ..conclusions import first_letter
from ..evaluation import MARGIN_EDGES
from .canvas import add_header, new_figure, tidy


def margin_figure(histograms: Mapping[str, Sequence[Sequence[int]]], class_names: Sequence[str]) -> Any | None:
    """Histograms of the true class's margin over the test voxels, one panel per class, and below each the share below 0.

    Args:
        histograms: label -> counts (C, bins) over `MARGIN_EDGES`.
        class_names: background first.
    """
    if not histograms:
        return None
    from matplotlib.lines import Line2D

    columns = min(3, len(class_names))
    ranks = -(-len(class_names) // columns)
    figure = new_figure(ranks * (2.2 + 0.16 * len(histograms) + 0.5))
    grid = figure.add_gridspec(2 * ranks, columns, height_ratios=[2.2, 0.16 * len(histograms) + 0.5] * ranks)
    centres = (MARGIN_EDGES[:-1] + MARGIN_EDGES[1:]) / 2
    colours = dict(zip(histograms, (BLACK, *SERIES) if "before" in histograms else SERIES, strict=False))
    wrong: dict[str, dict[str, float]] = {}
    for k, name in enumerate(class_names):
        above = figure.add_subplot(grid[2 * (k // columns), k % columns])
        below = figure.add_subplot(grid[2 * (k // columns) + 1, k % columns])
        for row, (label, colour) in enumerate(colours.items()):
            shares = np.asarray(histograms[label], dtype=float)[k]
            shares = 100 * shares / max(shares.sum(), 1)
            # the outermost bins hold everything beyond them and are not drawn
            above.step(centres[1:-1], shares[1:-1], where="mid", color=colour, linewidth=1.3)
            missed = float(shares[centres < 0].sum())
            wrong.setdefault(name, {})[label] = missed
            below.barh(row, missed, 0.7, color=colour)
            below.annotate(f" {missed:.1f}", (missed, row), va="center", fontsize=7.5)
        above.axvline(0, color=BLACK, linewidth=0.8)
        above.set_title(name, fontsize=9.5)
        above.set_xlim(MARGIN_EDGES[0], MARGIN_EDGES[-1])
        above.set_ylim(bottom=0)
        above.set_xlabel("margin of the true class", fontsize=8.5)
        most = max([*wrong[name].values(), 1e-9])
        below.set_xlim(0, 1.25 * most)
        below.set_ylim(len(colours) - 0.4, -0.6)
        below.set_yticks([])
        below.set_xlabel("of its voxels below 0, %", fontsize=8.5)
        tidy(above, "both")
        tidy(below)
        if k % columns == 0:
            above.set_ylabel("% of the class per bin", fontsize=8.5)
    handles = [Line2D([], [], color=colour, label=label) for label, colour in colours.items()]
    return add_header(figure, _says(wrong, class_names), handles, columns=3)


def _says(wrong: Mapping[str, Mapping[str, float]], class_names: Sequence[str]) -> str:
    said = []
    for name in class_names[1:3]:
        least = min(wrong[name], key=lambda label: wrong[name][label])
        most = max(wrong[name], key=lambda label: wrong[name][label])
        said.append(
            f"of {name}, {wrong[name][least]:.1f} % of the voxels lie on the wrong side with {least} and "
            f"{wrong[name][most]:.1f} % with {most}"
        )
    return first_letter("; ".join(said)) + "."
