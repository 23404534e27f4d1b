"""Test slices with truth and predictions side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...extras import require
from ...palette import TRUTH_OUTLINE, class_colour
from ..scores import foreground_iou
from .canvas import WIDTH, add_header, new_figure

_OUTLINE = "outline of the truth"


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
    width = WIDTH / max(len(columns), 4)
    letters = int(width / 0.085)
    truths = [first[f"truth_{number}"] for number in range(cases)]
    tallest = max(truth.shape[1] / truth.shape[0] for truth in truths)
    heads = {name: textwrap.wrap(name, letters) for name in columns}
    head = 0.15 * max(map(len, heads.values()))
    figure = new_figure((width * min(tallest, 2.0) + 0.3) * cases + head)
    axes = figure.subplots(cases, len(columns), squeeze=False)
    table = np.array([(0, 0, 0, 0), *(to_rgba(class_colour(k), 0.55) for k in range(1, len(class_names)))])
    scores: dict[str, list[float]] = {}
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
            lines = heads[name] if number == 0 else []
            if name in pictures:
                score = _slice_iou(truth, pictures[name][f"prediction_{number}"].T, len(class_names))
                scores.setdefault(name, []).append(score)
                lines = [*lines, f"IoU {100 * score:.0f} %"]
            axis.set_title("\n".join(lines), fontsize=8)
            axis.set_axis_off()
    handles: list[Patch | Line2D] = [
        Patch(facecolor=table[k], label=name) for k, name in enumerate(class_names) if k > 0
    ]
    handles.append(Line2D([], [], color=TRUTH_OUTLINE, label=_OUTLINE))
    return add_header(figure, _says(scores), handles, columns=_legend_columns(class_names))


def _says(scores: Mapping[str, list[float]]) -> str:
    means = ", ".join(f"{name} {100 * np.mean(found):.0f} %" for name, found in scores.items())
    slices = len(next(iter(scores.values())))
    where = "this slice" if slices == 1 else f"these {slices} slices"
    return f"Mean IoU in {where}: {means}. Examples of one seed, not evidence."


def _slice_iou(truth: np.ndarray, prediction: np.ndarray, classes: int) -> float:
    """Foreground mean IoU of a slice, as the study's scores have it."""
    matrix = np.bincount(classes * truth.ravel().astype(int) + prediction.ravel(), minlength=classes**2)
    return float(foreground_iou(matrix.reshape(classes, classes)))


def _legend_columns(class_names: list[str]) -> int:
    """As many as fit into the width of a figure."""
    longest = max(len(name) for name in [*class_names[1:], _OUTLINE])
    return max(1, min(len(class_names), int(WIDTH / (0.55 + 0.085 * longest))))


def _grey_or_colour(image: np.ndarray) -> np.ndarray:
    """An image (x, y) as it is; one in colour (x, y, 3) on the scale from 0 to 1, whatever the transforms made of it."""
    image = image.astype(np.float32)
    if image.ndim == 2:
        return image
    low, high = float(image.min()), float(image.max())
    return (image - low) / (high - low) if high > low else np.zeros_like(image)
