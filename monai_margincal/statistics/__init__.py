"""Exact label statistics of whole data sets: counting, what it costs, what it brings to light.

Names are imported on first use: a worker process that counts files needs a small part of this.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .case_record import CaseRecord, Failure
    from .class_weights import effective_number_weights, inverse_frequency_weights, median_frequency_weights
    from .count import count_labels
    from .findings import Finding, find_problems, frequency_drift
    from .intensities import find_contradicting_intensities
    from .report import report_data, write_report
    from .scan import LabelScan, scan_labels

_EXPORTS = {
    "effective_number_weights": "class_weights",
    "inverse_frequency_weights": "class_weights",
    "median_frequency_weights": "class_weights",
    "Finding": "findings",
    "find_problems": "findings",
    "frequency_drift": "findings",
    "find_contradicting_intensities": "intensities",
    "report_data": "report",
    "write_report": "report",
    "CaseRecord": "case_record",
    "Failure": "case_record",
    "LabelScan": "scan",
    "count_labels": "count",
    "scan_labels": "scan",
}

__all__ = [
    "CaseRecord",
    "Failure",
    "Finding",
    "LabelScan",
    "count_labels",
    "effective_number_weights",
    "find_contradicting_intensities",
    "find_problems",
    "frequency_drift",
    "inverse_frequency_weights",
    "median_frequency_weights",
    "report_data",
    "scan_labels",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_EXPORTS[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
