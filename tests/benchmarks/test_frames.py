"""The benchmark of frames runs and writes its table."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("frames.py")


@pytest.mark.slow
def test_a_small_run(tmp_path):
    flags = ["--size", "96", "64", "--features", *["8", "16", "32", "64", "128"], "--threads", "1", "--repeats", "1"]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *flags, "--output", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    with (tmp_path / "frames.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["whole", "windows", "read", "write"]
    for row in rows:
        assert float(row["frames_per_second"]) == pytest.approx(1 / float(row["seconds"]))
        assert float(row["cpu_seconds"]) > 0
    # padded to windows of 768 x 768 a frame of 96 x 64 takes longer
    assert float(rows[1]["cpu_seconds"]) > 5 * float(rows[0]["cpu_seconds"])
    assert "| 1 | whole |" in done.stdout
