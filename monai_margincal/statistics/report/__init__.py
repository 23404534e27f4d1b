"""One self-contained HTML page about the class statistics of a data set, and the same as JSON."""

from __future__ import annotations

from .content import report_data
from .page import render_report, write_report

__all__ = ["render_report", "report_data", "write_report"]
