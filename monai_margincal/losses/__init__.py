"""Losses in MONAI's manner: logits (B, N, *spatial) in, a plain tensor out."""

from __future__ import annotations

from .compound import MarginCalibrationDiceLoss, MarginCalibrationTverskyLoss
from .lovasz import LovaszSoftmaxLoss
from .margin_calibration import MarginCalibrationLoss

__all__ = [
    "LovaszSoftmaxLoss",
    "MarginCalibrationDiceLoss",
    "MarginCalibrationLoss",
    "MarginCalibrationTverskyLoss",
]
