"""All parts at tiny shapes on the CPU, as the real run calls them, and the pages from what they leave."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from gpu import pages, results
from gpu.parts import CHECKS

RUN = Path(__file__).with_name("run")


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_small_run(tmp_path):
    environment = {**os.environ, "PYTHON": sys.executable}
    done = subprocess.run(
        [str(RUN), "--small", "--output", str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    log = (tmp_path / "run.log").read_text() if (tmp_path / "run.log").exists() else ""
    assert done.returncode == 0, done.stdout + done.stderr + log
    found = results.read(tmp_path)
    assert found["machine"]["small"]
    assert found["machine"]["torch"]
    assert found["machine"]["date"]
    assert set(found["machine"]) >= {"card", "driver", "cuda", "triton", "memory_gib"}
    states = {name: part["status"] for name, part in found["parts"].items()}
    assert states.pop("tensorrt") in ("left out", "passed")
    assert states == dict.fromkeys(("correctness", "loss", "inference", "training"), "passed")
    rows = {name: part["rows"] for name, part in found["parts"].items()}
    assert [row["check"] for row in rows["correctness"]] == list(CHECKS)
    assert all(row["status"] == "passed" and row["cases"] > 0 for row in rows["correctness"])
    assert {pages.OURS, "F.cross_entropy"} <= {row["loss"] for row in rows["loss"]}
    assert {row["part"] for row in rows["inference"]} == {"network", "whole", "lung crop"}
    assert [row["way"] for row in rows["training"]] == ["reference", "recipe"]
    # what a borrowed machine gives back is at most eight files
    assert len(list(tmp_path.iterdir())) <= 8
    pages.main([str(tmp_path), "--output", str(tmp_path / "page")])
    text = (tmp_path / "page" / "gpu.md").read_text()
    assert f"| {pages.OURS} |" in text
    assert "| recipe |" in text
    assert (tmp_path / "page" / "gpu.png").stat().st_size > 10_000
