"""The pictures: slices of a volume next to the true and the predicted mask."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..extras import require
from ..files import replacing
from ..palette import TRUTH_OUTLINE, class_colour
from .lps_volumes import lps_volumes

__all__ = ["SegmentationView", "coloured_classes", "draw_scale_bar", "load_view", "save_overlay"]


@dataclass(frozen=True, eq=False)
class SegmentationView:
    """One volume with its masks, ready to be shown.

    Args:
        title: what the row of pictures is called.
        image: intensities, (X, Y, Z), axes in LPS order: x to the patient's left, y to the back, z to the head.
        truth: class indices of the same shape, or None where no truth is known.
        prediction: class indices of the same shape.
        spacing: edge lengths of a voxel in mm, (3,).
        caption: a line under the prediction, for example its IoU.
    """

    title: str
    image: np.ndarray
    truth: np.ndarray | None
    prediction: np.ndarray
    spacing: tuple[float, float, float]
    caption: str = ""

    def __post_init__(self) -> None:
        shapes = {"image": self.image.shape, "prediction": self.prediction.shape}
        if self.truth is not None:
            shapes["truth"] = self.truth.shape
        if len(set(shapes.values())) != 1 or self.image.ndim != 3:
            raise ValueError(f"{self.title}: found the shapes {shapes}, expected the same (X, Y, Z) for all")

    @property
    def best_slice(self) -> int:
        """Axial slice with the most foreground in the truth, or in the prediction if the truth is unknown or empty."""
        for mask in (self.truth, self.prediction):
            if mask is None:
                continue
            areas = (mask > 0).sum(axis=(0, 1))
            if areas.any():
                return int(areas.argmax())
        return self.image.shape[2] // 2


def load_view(
    title: str,
    image: str | os.PathLike[str],
    truth: str | os.PathLike[str],
    prediction: str | os.PathLike[str],
    caption: str = "",
) -> SegmentationView:
    """Read a NIfTI image and its two masks and turn them into LPS order.

    Raises:
        ValueError: a mask does not lie on the image's grid.
    """
    volumes, spacing = lps_volumes({"image": image, "truth": truth, "prediction": prediction})
    return SegmentationView(
        title, volumes["image"], volumes["truth"], volumes["prediction"], spacing=spacing, caption=caption
    )


def save_overlay(
    views: Sequence[SegmentationView],
    path: str | os.PathLike[str],
    class_names: Sequence[str],
    window: tuple[float, float],
    image_name: str = "image",
    one_column_each: bool = False,
) -> None:
    """Draw one row per volume: the slice with the most foreground, its true mask, its predicted mask.

    The patient's right is on the left, as radiologists view it. The true outline is drawn over the prediction too, so that
    missed and invented regions can be seen at once. If no volume has a truth, the column for it is left out.

    Args:
        views: the volumes, one row each.
        path: the PNG (or any format that matplotlib writes), written completely or not at all.
        class_names: names of the classes; class 0 is not drawn.
        window: intensities shown as black and white.
        image_name: what the volumes are called above their slices, such as "CT".
        one_column_each: a column per volume instead of a row, for a picture that is wide rather than high.

    Raises:
        ValueError: there is nothing to draw.
    """
    if not views:
        raise ValueError("found no volume to draw, expected at least one")
    require("matplotlib", extra="bundle", purpose="drawing a picture")
    # the object interface: no global state, no window, thread-safe
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    with_truth = any(view.truth is not None for view in views)
    columns = ("image", "truth", "prediction") if with_truth else ("image", "prediction")
    wide, high = (len(views), len(columns)) if one_column_each else (len(columns), len(views))
    figure = Figure(figsize=(3.4 * wide, 3.75 * high + 0.6), facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(high, wide, squeeze=False)
    if one_column_each:
        axes = axes.T
    for row, view in zip(axes, views, strict=True):
        k = view.best_slice
        aspect = view.spacing[1] / view.spacing[0]
        headings = {
            "image": f"{view.title}\n{image_name}, slice {k}",
            "truth": "truth" if view.truth is not None else "no truth known",
            "prediction": f"prediction\n{view.caption}" if view.caption else "prediction",
        }
        plane = view.image[:, :, k].T
        truth = None if view.truth is None else view.truth[:, :, k].T > 0
        for axis, name in zip(row, columns, strict=True):
            axis.imshow(plane, cmap="gray", vmin=window[0], vmax=window[1], aspect=aspect, interpolation="nearest")
            mask = None if name == "image" else getattr(view, name)
            if mask is not None:
                axis.imshow(coloured_classes(mask[:, :, k].T), aspect=aspect, interpolation="nearest")
            if name != "image" and truth is not None and truth.any() and not truth.all():
                axis.contour(truth, levels=[0.5], colors=TRUTH_OUTLINE, linewidths=1.1)
            axis.set_title(headings[name], fontsize=10)
            axis.set_axis_off()
        draw_scale_bar(row[0], plane.shape, view.spacing[0])
    handles: list[Patch | Line2D] = [
        Patch(facecolor=class_colour(k), alpha=0.6, label=name) for k, name in enumerate(class_names) if k > 0
    ]
    if with_truth:
        handles.append(Line2D([], [], color=TRUTH_OUTLINE, label="outline of the truth"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=10)
    with replacing(path) as beside:
        figure.savefig(beside, dpi=110)


def coloured_classes(mask: np.ndarray) -> np.ndarray:
    """RGBA picture of a class map, (H, W, 4), class 0 transparent.

    Example:
        >>> coloured_classes(np.array([[0, 1]]))[..., 3].tolist()
        [[0.0, 0.6]]
    """
    from matplotlib.colors import to_rgba

    table = [(0.0, 0.0, 0.0, 0.0)] + [to_rgba(class_colour(k), 0.6) for k in range(1, int(mask.max()) + 1)]
    return np.array(table)[mask.astype(np.intp)]


def draw_scale_bar(axis: Any, shape: tuple[int, int], pixel_mm: float) -> None:
    """Draw how long 10 or 20 mm are on a picture (H, W) of square pixels with this edge in mm."""
    from matplotlib.patheffects import Normal, Stroke

    height, width = shape
    # short enough for a box around one nodule
    length_mm = 20.0 if width * pixel_mm > 60 else 10.0
    pixels = length_mm / pixel_mm
    x, y = 0.05 * width, 0.94 * height
    # a dark rim keeps the bar visible on bright and on dark ground
    rim = [Stroke(linewidth=4, foreground="black"), Normal()]
    axis.plot([x, x + pixels], [y, y], color="white", linewidth=2.5, solid_capstyle="butt", path_effects=rim)
    rim = [Stroke(linewidth=2, foreground="black"), Normal()]
    text = f"{length_mm:.0f} mm"
    axis.text(
        x + pixels / 2, y - 0.02 * height, text, color="white", ha="center", va="bottom", fontsize=8, path_effects=rim
    )
