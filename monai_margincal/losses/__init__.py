"""Losses in MONAI's manner: logits (B, N, *spatial) in, a plain tensor out."""

from __future__ import annotations

from .compound import MarginCalibrationDiceLoss, MarginCalibrationTverskyLoss
from .cross_entropy import CrossEntropyLoss
from .iou_calibration import (
    BoundWeights,
    IoUCalibratedMargins,
    iou_calibrated_margin,
    iou_optimal_threshold,
)
from .lovasz import LovaszSoftmaxLoss
from .margin_calibration import MarginCalibrationLoss
from .running_confusion import RunningConfusion

__all__ = [
    "BoundWeights",
    "CrossEntropyLoss",
    "IoUCalibratedMargins",
    "LovaszSoftmaxLoss",
    "MarginCalibrationDiceLoss",
    "MarginCalibrationLoss",
    "MarginCalibrationTverskyLoss",
    "RunningConfusion",
    "iou_calibrated_margin",
    "iou_optimal_threshold",
]
