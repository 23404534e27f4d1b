"""Rows of ``metrics.csv`` as numbers."""

from __future__ import annotations

import csv


def last_metrics(file):
    """The metrics of the last row, without their units."""
    with file.open(newline="") as opened:
        *_, row = csv.DictReader(opened)
    return {
        name.split(" [")[0]: float(value)
        for name, value in row.items()
        if value and name not in ("run", "started", "epoch")
    }
