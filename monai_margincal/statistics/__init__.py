"""Exact label statistics of whole data sets: counting, class weights, and the problems that counting reveals."""

from __future__ import annotations

from .class_weights import effective_number_weights, inverse_frequency_weights, median_frequency_weights
from .dataset_counts import count_labels
from .intensities import find_contradicting_intensities
from .problems import find_problems, frequency_drift
from .scan import LabelScan, scan_labels

__all__ = [
    "LabelScan",
    "count_labels",
    "effective_number_weights",
    "find_contradicting_intensities",
    "find_problems",
    "frequency_drift",
    "inverse_frequency_weights",
    "median_frequency_weights",
    "scan_labels",
]
