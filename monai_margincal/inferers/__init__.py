"""Whole-volume inference with slice networks: slices, decisions, and an evaluator that goes on when a scan fails."""

from __future__ import annotations

from .failed_scans import FailedScans
from .scan_evaluator import ScanEvaluator
from .scan_progress import ScanProgress
from .tensorrt_program import load_tensorrt_program
from .volume_slices import VolumeSliceInferer

__all__ = ["FailedScans", "ScanEvaluator", "ScanProgress", "VolumeSliceInferer", "load_tensorrt_program"]
