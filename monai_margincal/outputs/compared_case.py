"""A case with the saved predictions of several runs, ready to be shown side by side: a frame, or a slice of a volume."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from ..formats import PICTURE_SUFFIXES, suffix_of
from ..formats.colour_frame import colour_frame
from ..formats.video import video_frame
from ..metrics import class_iou, confusion_matrix
from .lps_volumes import lps_volumes


@dataclass(frozen=True, eq=False)
class ComparedCase:
    """One picture with its truth and predictions.

    Attributes:
        title: what the case is called.
        image: (H, W) intensities or (H, W, 3) of 8 bits, the right way up.
        truth: class ids, (H, W).
        predictions: run -> class ids, (H, W).
        pixel_mm: width and height of a pixel of a volume's slice; None for a frame.
        volumes: run -> confusion matrix of the whole volume, rows = truth; empty for a frame.
    """

    title: str
    image: np.ndarray
    truth: np.ndarray
    predictions: dict[str, np.ndarray]
    pixel_mm: tuple[float, float] | None
    volumes: dict[str, np.ndarray]


def compared_case(
    image: str | os.PathLike[str],
    label: str | os.PathLike[str],
    predictions: Mapping[str, str | os.PathLike[str]],
    num_classes: int,
    ignore_index: int | None = None,
    slice_index: int | None = None,
) -> ComparedCase:
    """Read a case with its predictions; of a volume the axial slice with the most voxels of the rarest class is shown.

    Args:
        image: a frame (PNG, JPEG, ... or one of a video), or a NIfTI volume.
        label: its class map: a PNG or a NIfTI volume.
        predictions: run -> saved class map of the same size, or on the same grid.
        num_classes: number of classes, background included.
        ignore_index: label of pixels that count nowhere.
        slice_index: another axial slice, counted from the feet.

    Raises:
        ValueError: a class map has another size or grid than the image, a class that there is not, or the slice is outside.

    Example:
        >>> from monai_margincal.samples import sample_dir
        >>> label = f"{sample_dir('lung_ct')}/labels/lung1.nii.gz"
        >>> case = compared_case(f"{sample_dir('lung_ct')}/images/lung1.nii.gz", label, {"itself": label}, num_classes=2)
        >>> case.title, case.image.shape, float(panel_iou(case.volumes["itself"])[1])
        ('lung1, slice 12', (192, 192), 1.0)
    """
    name = Path(image).name.removesuffix(suffix_of(Path(image)))
    maps = {"label": label, **{f"run {run}": path for run, path in predictions.items()}}
    if suffix_of(Path(image)).lower() in PICTURE_SUFFIXES or video_frame(image) is not None:
        frame = np.asarray(colour_frame(image))
        read = {key: _class_picture(Path(path), frame.shape[:2]) for key, path in maps.items()}
        title, spacing, volumes = name, None, {}
    else:
        found, (wide, high, _) = lps_volumes({"image": image, **maps})
        pairs = {run: (found[f"run {run}"], found["label"]) for run in predictions}
        volumes = {run: _confusion(*pair, num_classes, ignore_index) for run, pair in pairs.items()}
        shown = _slice_to_show(found["label"], ignore_index) if slice_index is None else slice_index
        depth = found["label"].shape[2]
        if not 0 <= shown < depth:
            raise ValueError(f"{image}: found slice {shown}, expected 0 to {depth - 1}")
        planes = {key: volume[:, :, shown].T for key, volume in found.items()}
        frame, read = planes.pop("image"), planes
        title, spacing = f"{name}, slice {shown}", (wide, high)
    case = ComparedCase(
        title, frame, read["label"], {run: read[f"run {run}"] for run in predictions}, pixel_mm=spacing, volumes=volumes
    )
    for run, path in predictions.items():
        try:
            panel_confusion(case, run, num_classes, ignore_index)
        except ValueError as error:
            raise ValueError(f"{path}, compared with {label}: {error}") from error
    return case


def panel_confusion(case: ComparedCase, run: str, num_classes: int, ignore_index: int | None = None) -> np.ndarray:
    """The confusion matrix of what is shown, int64 (num_classes, num_classes), rows = truth."""
    return _confusion(case.predictions[run], case.truth, num_classes, ignore_index)


def panel_iou(confusion: np.ndarray) -> np.ndarray:
    """IoU per class, float64, NaN for one that is in neither truth nor prediction."""
    return np.asarray(class_iou(confusion))


def _confusion(predicted: np.ndarray, true: np.ndarray, num_classes: int, ignore_index: int | None) -> np.ndarray:
    y_pred, y = (torch.from_numpy(np.ascontiguousarray(values).astype(np.int64))[None] for values in (predicted, true))
    return confusion_matrix(y_pred, y, num_classes=num_classes, ignore_index=ignore_index).numpy()


def _slice_to_show(label: np.ndarray, ignore_index: int | None) -> int:
    """The slice with the most voxels of the class that has the fewest; the middle one without any class."""
    classes, counts = np.unique(label, return_counts=True)
    candidates = [(int(n), k) for k, n in zip(classes, counts, strict=True) if k not in (0, ignore_index)]
    if not candidates:
        return label.shape[2] // 2
    return int((label == min(candidates)[1]).sum(axis=(0, 1)).argmax())


def _class_picture(path: Path, size: tuple[int, ...]) -> np.ndarray:
    with Image.open(path) as picture:
        values = np.asarray(picture)
    if values.shape != size:
        raise ValueError(f"{path}: found a class map of the shape {values.shape}, expected {size}, that of the frame")
    return values
