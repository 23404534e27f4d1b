"""The inference benchmark runs and writes its table and chart."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("inference.py")


@pytest.mark.slow
def test_a_small_run(tmp_path):
    flags = ["--device", "cpu", "--slices", "3", "--plane", "64", "--features", *["8", "16", "32", "64", "128"]]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *flags, "--output", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    with (tmp_path / "inference.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows if row["part"] == "network"] == ["reference", "ours"]
    steps = ["read", "orient", "window", "network", "invert", "write"]
    assert [row["name"] for row in rows if row["part"] == "whole"] == steps
    assert all(float(row["seconds"]) >= 0 for row in rows)
    assert (tmp_path / "inference.png").stat().st_size > 5000
