"""The benchmark of kept memory: its page, and that what is kept is not fetched again."""

from __future__ import annotations

import importlib.util
import platform
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("freed_memory_benchmark", Path(__file__).with_name("freed_memory.py"))
benchmark = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(benchmark)


def test_the_page_has_the_figures() -> None:
    page = (Path(__file__).parents[2] / "docs" / "benchmarks" / "inference.md").read_text(encoding="utf-8")
    for work in benchmark.WORK:
        for way in benchmark.WAYS:
            assert f"| {work} | {way} |" in page


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such setting")
def test_slices_are_served_from_kept_memory() -> None:
    work = "inference, 16 slices of 512 x 512"
    found = {way: benchmark.measure(work, way, repeats=1) for way in benchmark.WAYS}
    assert found["kept"]["faults"] < found["returned"]["faults"] / 10
    assert found["kept"]["peak_gib"] < 2 * found["returned"]["peak_gib"]
