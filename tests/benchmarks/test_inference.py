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
    """Project-MONAI/MONAI#8107, MIC-DKFZ/nnUNet#3001, nipy/nibabel#1058: reading is measured with both readers."""
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
    assert [row["name"] for row in rows if row["part"] == "reader"] == ["nibabel", "ITK"]
    assert all(float(row["seconds"]) >= 0 for row in rows)
    assert (tmp_path / "inference.png").stat().st_size > 5000


def test_both_readers_of_labels_are_measured_too():
    """The same threads, for label files: the page names both beside ours."""
    page = (Path(__file__).parents[2] / "docs" / "benchmarks" / "statistics.md").read_text(encoding="utf-8")
    script = SCRIPT.with_name("label_statistics.py").read_text(encoding="utf-8")
    for method in ("nibabel + np.bincount", "SimpleITK + np.bincount"):
        assert f"| {method} |" in page
        assert f'"{method}"' in script
