"""Evaluation of a trained network on validation and test cases: confusion matrices per case and decoder, margins, pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from monai.inferers import sliding_window_inference
from torch import nn

from ..margins import logit_margins
from ..metrics import confusion_matrix
from ..ops import largest_class
from .cases import Case
from .objectives import Objective
from .scores import foreground_iou

__all__ = ["Evaluation", "MARGIN_EDGES", "evaluate", "predict_logits", "validation_curve_point"]

#: edges of the histogram of the true class's margin; the outer bins also hold all values beyond them
MARGIN_EDGES = np.linspace(-12.0, 12.0, 97)

#: samples per batch in evaluation
_EVALUATION_BATCH = 32


@torch.no_grad()
def predict_logits(
    network: nn.Module, case: Case, sample_size: Sequence[int], slice_axis: int | None, device: torch.device
) -> torch.Tensor:
    """Logits of a whole case on its own grid, float32 (C, *spatial).

    Slices or volumes smaller than the sample size are extended as in training; larger ones are covered by windows.
    """
    image = case.image.to(device)
    batch = image[None] if slice_axis is None else image.movedim(slice_axis + 1, 0)
    logits = sliding_window_inference(
        batch, tuple(sample_size), _EVALUATION_BATCH, network, overlap=0.25, padding_mode="replicate"
    )
    if not isinstance(logits, torch.Tensor):
        raise TypeError(f"the network gave {type(logits).__name__}, expected one tensor of logits")
    logits = logits.float()
    return logits[0] if slice_axis is None else logits.movedim(0, slice_axis + 1)


def validation_curve_point(
    network: nn.Module,
    objective: Objective,
    cases: Sequence[Case],
    sample_size: Sequence[int],
    slice_axis: int | None,
    device: torch.device,
) -> tuple[float, float]:
    """The objective (mean over the cases, each a batch of its own) and the foreground mean IoU by argmax."""
    losses, total = [], None
    for case in cases:
        logits = predict_logits(network, case, sample_size, slice_axis=slice_axis, device=device)
        label = case.label.to(device).long()
        losses.append(float(objective(logits[None], label[None, None])))
        matrix = _matrix(largest_class(_finite(logits), dim=0).cpu(), case.label, logits.shape[0])
        total = matrix if total is None else total + matrix
    return float(np.mean(losses)), float(foreground_iou(np.asarray(total)))


@dataclass
class Evaluation:
    """What is stored of an evaluation.

    Attributes:
        cases: names of the test cases.
        confusion: decoder -> confusion matrix of every test case.
        validation_confusion: decoder -> summed confusion matrix of the validation cases.
        decoder_states: decoder -> what it has learnt on the validation cases.
        margin_histogram: per true class, voxels of the test cases by margin of the true class, (C, bins).
        pictures: arrays for the qualitative panels.
    """

    cases: list[str]
    confusion: dict[str, np.ndarray]
    validation_confusion: dict[str, np.ndarray]
    decoder_states: dict[str, Any]
    margin_histogram: np.ndarray
    pictures: dict[str, np.ndarray]

    def to_dict(self) -> dict[str, Any]:
        """JSON types, without the pictures."""
        return {
            "cases": self.cases,
            "confusion": {name: matrices.tolist() for name, matrices in self.confusion.items()},
            "validation_confusion": {name: matrix.tolist() for name, matrix in self.validation_confusion.items()},
            "decoder_states": self.decoder_states,
            "margin_histogram": self.margin_histogram.tolist(),
        }


def evaluate(
    network: nn.Module,
    decoders: Mapping[str, Any],
    validation: Sequence[Case],
    test: Sequence[Case],
    sample_size: Sequence[int],
    slice_axis: int | None,
    device: torch.device,
    pictured: int = 3,
) -> Evaluation:
    """Fit the decoders on the validation cases and score them on the test cases.

    NaN logits of a diverged network count as a prediction of background.

    Args:
        network: trained.
        decoders: name -> decoder.
        validation: cases to fit decoders on.
        test: cases to report on.
        sample_size: of the task.
        slice_axis: of the task.
        device: where to compute.
        pictured: number of test cases whose slice with the most foreground is kept.
    """
    network.eval()

    def logits_of(case: Case) -> torch.Tensor:
        return _finite(predict_logits(network, case, sample_size, slice_axis=slice_axis, device=device)).cpu()

    known = [logits_of(case) for case in validation]
    groups = [case.group for case in validation] if any(case.group for case in validation) else None
    for decoder in decoders.values():
        decoder.fit(known, [case.label for case in validation], groups)
    confusion: dict[str, list[np.ndarray]] = {name: [] for name in decoders}
    validated: dict[str, np.ndarray] = {}
    histogram: np.ndarray | None = None
    pictures: dict[str, np.ndarray] = {}
    for name, decoder in decoders.items():
        matrices = [
            _matrix(decoder(logits), case.label, logits.shape[0])
            for case, logits in zip(validation, known, strict=True)
        ]
        validated[name] = np.sum(matrices, axis=0)
    known.clear()
    for number, case in enumerate(test):
        logits = logits_of(case)
        for name, decoder in decoders.items():
            prediction = decoder(logits)
            confusion[name].append(_matrix(prediction, case.label, logits.shape[0]))
            if number < pictured and name == next(iter(decoders)):
                pictures |= _picture(case, prediction, number, slice_axis)
        counted = _margin_histogram(logits, case.label)
        histogram = counted if histogram is None else histogram + counted
    return Evaluation(
        cases=[case.name for case in test],
        confusion={name: np.stack(matrices) for name, matrices in confusion.items()},
        validation_confusion=validated,
        decoder_states={name: decoder.state() for name, decoder in decoders.items()},
        margin_histogram=np.asarray(histogram),
        pictures=pictures,
    )


def _matrix(prediction: torch.Tensor, label: torch.Tensor, num_classes: int) -> np.ndarray:
    """Confusion matrix of one case, from class indices (*spatial)."""
    return confusion_matrix(prediction[None], label[None], num_classes).numpy()


def _finite(logits: torch.Tensor) -> torch.Tensor:
    broken = ~torch.isfinite(logits).all(dim=0)
    if not bool(broken.any()):
        return logits
    logits = logits.masked_fill(broken, 0.0)
    logits[0][broken] = 1.0
    return logits


def _margin_histogram(logits: torch.Tensor, label: torch.Tensor) -> np.ndarray:
    classes, bins = logits.shape[0], len(MARGIN_EDGES) - 1
    margins = logit_margins(logits[None])[0].gather(0, label.long()[None])[0]
    width = MARGIN_EDGES[1] - MARGIN_EDGES[0]
    place = ((margins - MARGIN_EDGES[0]) / width).floor().long().clamp(0, bins - 1)
    return (
        torch.bincount((label.long() * bins + place).flatten(), minlength=classes * bins).reshape(classes, bins).numpy()
    )


def _picture(case: Case, prediction: torch.Tensor, number: int, slice_axis: int | None) -> dict[str, np.ndarray]:
    """Image (x, y) or in colour (x, y, 3), truth and prediction (x, y), the last y at the top of the figure.

    MONAI gives spatial axes as (x, y): y points to the back or the head in a scan, but downwards in a photograph.
    """
    in_colour = case.label.ndim == 2 and case.image.shape[0] in (3, 4)
    image = case.image[:3].movedim(0, -1) if in_colour else case.image[0]
    planes = {"image": image, "truth": case.label, "prediction": prediction.to(torch.uint8)}
    if case.label.ndim == 2:
        planes = {name: plane.flip(1) for name, plane in planes.items()}
    else:
        axis = 2 if slice_axis is None else slice_axis
        areas = (case.label > 0).sum(dim=[a for a in range(3) if a != axis])
        planes = {name: plane.select(axis, int(areas.argmax())) for name, plane in planes.items()}
    return {
        f"{name}_{number}": plane.numpy().astype(np.float16 if name == "image" else np.uint8)
        for name, plane in planes.items()
    }
