"""The fused computation behind the losses: one operation, its gradient, and the reading of targets."""

from __future__ import annotations

from ..processes.tensors import mean_over_ranks
from .largest import class_dtype, largest_class
from .operator import margin_calibration
from .overlap_operator import margin_overlap

__all__ = ["class_dtype", "largest_class", "margin_calibration", "margin_overlap", "mean_over_ranks"]
