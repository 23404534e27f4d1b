"""Peak memory of whole-scan inference stays within what its page says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("inference_memory", Path(__file__).with_name("inference_memory.py"))
benchmark = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(benchmark)

#: bytes per voxel of a 512 x 512 x 600 scan beside what the program has before it starts
LIMIT = {"whole slices": 20.0, "whole slices, and the probability map": 32.0}


@pytest.mark.slow
@pytest.mark.parametrize("way", LIMIT)
def test_a_scan_of_600_slices(tmp_path, way):
    """Project-MONAI/MONAI#6427, #854, #1189, #4425, #5297, #9071, Project-MONAI/model-zoo#657: 22.9 GB, or ten times slower."""
    slices = 600
    found = benchmark.measure(benchmark.drawn_scan(tmp_path, slices), **benchmark.WAYS[way])
    per_voxel = (found["peak_gib"] - found["start_gib"]) * 2**30 / (512 * 512 * slices)
    assert per_voxel < LIMIT[way], found


def test_the_page_has_the_figure():
    page = (Path(__file__).parents[2] / "docs" / "benchmarks" / "inference.md").read_text(encoding="utf-8")
    for way in benchmark.WAYS:
        assert f"| 512 x 512 x 600 | {way} |" in page
