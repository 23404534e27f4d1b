"""Image, truth and the predictions of several runs side by side, as in the figures of papers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..extras import require
from ..files import replacing
from ..palette import GREY, TRUTH_OUTLINE, class_colour
from .compared_case import ComparedCase, panel_confusion, panel_iou
from .segmentation_view import coloured_classes, draw_scale_bar

#: of one panel, in inches
_WIDTH = 2.3
#: more classes than this are not named one by one under a panel
_NAMED = 3
_OUTLINE, _VOID = "outline of the truth", "void, counts nowhere"


def save_comparison(
    cases: Sequence[ComparedCase],
    path: str | os.PathLike[str],
    class_names: Sequence[str],
    ignore_index: int | None = None,
    window: tuple[float, float] | None = None,
) -> None:
    """Draw one row per case: image, truth, one panel per run with its IoU; the outline of the truth lies over every prediction.

    The IoU is that of the pixels shown, for a slice also that of the whole volume, of each class or, with many, its mean over the
    classes but the background. A class in neither truth nor prediction has none. Colours are those of `palette.class_colour`.

    Args:
        cases: at least one; all with the same runs.
        path: the PNG, or any format that matplotlib writes; written completely or not at all.
        class_names: names of the classes by id; the first is the background.
        ignore_index: label of pixels that count nowhere; drawn in grey in the truth.
        window: intensities of slices shown as black and white; by default all but the lowest and highest percent.

    Raises:
        ValueError: there is no case, or the runs of two cases differ.
    """
    if not cases:
        raise ValueError("found no case to draw, expected at least one")
    runs = list(cases[0].predictions)
    for case in cases:
        if list(case.predictions) != runs:
            raise ValueError(f"{case.title}: found the runs {list(case.predictions)}, expected {runs}")
    require("matplotlib", extra="bundle", purpose="drawing a picture")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import to_rgba
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    columns = ["image", "truth", *runs]
    shapes = [(case.image.shape[0] * _aspect(case) / case.image.shape[1]) for case in cases]
    # below a panel stands one line, below that of a slice two
    lines = sum(0.2 if case.pixel_mm is None else 0.35 for case in cases)
    height = sum(_WIDTH * min(shape, 2.0) for shape in shapes) + lines + 0.75
    figure = Figure(figsize=(_WIDTH * len(columns), height), facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(cases), len(columns), squeeze=False, height_ratios=[min(shape, 2.0) for shape in shapes])
    for row, case in zip(axes, cases, strict=True):
        is_void = np.zeros(case.truth.shape, bool) if ignore_index is None else case.truth == ignore_index
        truth = np.where(is_void, 0, case.truth)
        for axis, name in zip(row, columns, strict=True):
            _draw_image(axis, case, window)
            if name == "image":
                axis.text(0.0, -0.02, case.title, transform=axis.transAxes, va="top", fontsize=8)
            else:
                mask = truth if name == "truth" else np.where(is_void, 0, case.predictions[name])
                axis.imshow(coloured_classes(mask), aspect=_aspect(case), interpolation="nearest")
            if name == "truth" and is_void.any():
                shade = np.where(is_void[..., None], to_rgba(GREY, 0.75), 0.0)
                axis.imshow(shade, aspect=_aspect(case), interpolation="nearest")
            if name in runs:
                for k in range(1, len(class_names)):
                    inside = truth == k
                    if inside.any() and not inside.all():
                        axis.contour(inside, levels=[0.5], colors=TRUTH_OUTLINE, linewidths=0.9)
                text = _iou_text(case, name, class_names, ignore_index)
                axis.text(0.0, -0.02, text, transform=axis.transAxes, va="top", fontsize=8)
            if case is cases[0]:
                axis.set_title(name, fontsize=10, fontweight="bold" if name in runs else "normal")
            axis.set_axis_off()
        if case.pixel_mm is not None:
            draw_scale_bar(row[0], case.truth.shape, case.pixel_mm[0])
    handles: list[Patch | Line2D] = [
        Patch(facecolor=class_colour(k), alpha=0.6, label=name) for k, name in enumerate(class_names) if k > 0
    ]
    if ignore_index is not None and any((case.truth == ignore_index).any() for case in cases):
        handles.append(Patch(facecolor=GREY, alpha=0.75, label=_VOID))
    handles.append(Line2D([], [], color=TRUTH_OUTLINE, label=_OUTLINE))
    longest = max(len(str(handle.get_label())) for handle in handles)
    fit = max(1, int(_WIDTH * len(columns) / (0.6 + 0.08 * longest)))
    figure.legend(handles=handles, loc="outside lower center", ncols=min(fit, len(handles)), frameon=False, fontsize=9)
    with replacing(path) as beside:
        figure.savefig(beside, dpi=150)


def _aspect(case: ComparedCase) -> float:
    return 1.0 if case.pixel_mm is None else case.pixel_mm[1] / case.pixel_mm[0]


def _draw_image(axis: Any, case: ComparedCase, window: tuple[float, float] | None) -> None:
    if case.image.ndim == 3:
        axis.imshow(case.image, interpolation="nearest")
        return
    low, high = np.percentile(case.image, (1, 99)) if window is None else window
    axis.imshow(case.image, cmap="gray", vmin=low, vmax=high, aspect=_aspect(case), interpolation="nearest")


def _iou_text(case: ComparedCase, run: str, class_names: Sequence[str], ignore_index: int | None) -> str:
    """One line for what is shown and, below a slice, one for its volume."""
    shown = panel_confusion(case, run, len(class_names), ignore_index)
    lines = [_of_classes(panel_iou(shown), class_names)]
    if run in case.volumes:
        lines.append(f"volume: {_of_classes(panel_iou(case.volumes[run]), class_names)}")
    return "\n".join(lines)


def _of_classes(ious: np.ndarray, class_names: Sequence[str]) -> str:
    present = {name: iou for name, iou in list(zip(class_names, ious, strict=True))[1:] if not np.isnan(iou)}
    if not present:
        return "IoU -: no class here"
    if len(class_names) == 2:
        return f"IoU {next(iter(present.values())):.2f}"
    mean = f"mean IoU {np.mean(list(present.values())):.2f}"
    if len(class_names) - 1 > _NAMED:
        return mean
    return mean + "   " + ", ".join(f"{name} {iou:.2f}" for name, iou in present.items())
