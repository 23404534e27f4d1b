"""Test slices with truth and predictions side by side."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...extras import require
from ...palette import TRUTH_OUTLINE, class_colour
from .canvas import new_figure

_OUTLINE = "outline of the truth"

#: of one picture, in inches
_WIDTH = 1.75


def panel_figure(pictures: Mapping[str, Mapping[str, np.ndarray]], class_names: list[str]) -> Any | None:
    """One row per test case: image, truth, one prediction per objective; the true outline over every prediction.

    Args:
        pictures: objective -> arrays ``image_i`` (x, y) or (x, y, 3), ``truth_i`` and ``prediction_i`` (x, y) of the cases
            i = 0, 1, ..., the last y at the top.
        class_names: background first.
    """
    if not pictures:
        return None
    require("matplotlib", extra="experiments", purpose="drawing a figure")
    from matplotlib.colors import to_rgba
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    first = next(iter(pictures.values()))
    cases = sum(name.startswith("truth_") for name in first)
    if not cases:
        return None
    columns = ["image", "truth", *pictures]
    width = _WIDTH * len(columns)
    in_legend = _legend_columns(class_names, width)
    truths = [first[f"truth_{number}"] for number in range(cases)]
    tallest = max(truth.shape[1] / truth.shape[0] for truth in truths)
    legend = 0.25 * math.ceil(len(class_names) / in_legend)
    figure = new_figure(width, (_WIDTH * min(tallest, 2.0) + 0.2) * cases + 0.4 + legend)
    axes = figure.subplots(cases, len(columns), squeeze=False)
    table = np.array([(0, 0, 0, 0), *(to_rgba(class_colour(k), 0.55) for k in range(1, len(class_names)))])
    for number, row in enumerate(axes):
        image, truth = _grey_or_colour(first[f"image_{number}"]).swapaxes(0, 1), first[f"truth_{number}"].T
        for axis, name in zip(row, columns, strict=True):
            axis.imshow(image, cmap="gray", origin="lower", interpolation="nearest")
            mask = None if name == "image" else truth if name == "truth" else pictures[name][f"prediction_{number}"].T
            if mask is not None:
                axis.imshow(table[mask], origin="lower", interpolation="nearest")
                for k in range(1, len(class_names)):
                    if (truth == k).any():
                        axis.contour(truth == k, levels=[0.5], colors=TRUTH_OUTLINE, linewidths=0.8)
            if number == 0:
                axis.set_title(textwrap.fill(name, 20), fontsize=8)
            axis.set_axis_off()
    handles: list[Patch | Line2D] = [
        Patch(facecolor=table[k], label=name) for k, name in enumerate(class_names) if k > 0
    ]
    handles.append(Line2D([], [], color=TRUTH_OUTLINE, label=_OUTLINE))
    figure.legend(handles=handles, loc="outside lower center", ncols=in_legend, frameon=False, fontsize=9)
    return figure


def _legend_columns(class_names: list[str], width: float) -> int:
    """As many as fit into the width of the figure in inches."""
    longest = max(len(name) for name in [*class_names[1:], _OUTLINE])
    return max(1, min(len(class_names), int(width / (0.55 + 0.085 * longest))))


def _grey_or_colour(image: np.ndarray) -> np.ndarray:
    """An image (x, y) as it is; one in colour (x, y, 3) on the scale from 0 to 1, whatever the transforms made of it."""
    image = image.astype(np.float32)
    if image.ndim == 2:
        return image
    low, high = float(image.min()), float(image.max())
    return (image - low) / (high - low) if high > low else np.zeros_like(image)
