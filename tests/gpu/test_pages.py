"""The tables and the chart say what the JSON says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gpu import pages, results

DOCS = Path(__file__).parents[2] / "docs"
MACHINE = {
    "card": "NVIDIA H200",
    "driver": "580.1",
    "torch": "2.11.0",
    "triton": "3.6.0",
    "monai": "1.6.1",
    "date": "2026-12-01",
    "small": False,
}


def loss_row(loss, shape, dtype, ratio):
    about = {"shape": shape, "dtype": dtype, "loss": loss, "error": ""}
    return {
        **about,
        "milliseconds": 2 * ratio,
        "to_cross_entropy": ratio,
        "to_copy": 4 * ratio,
        "extra_to_logits": 1.01,
    }


@pytest.fixture
def measured():
    found = results.empty(MACHINE, list(pages.TABLES))
    rows = {
        "correctness": [{"check": "golden", "cases": 40, "status": "failed", "seconds": 9.5, "reason": "off by one"}],
        "loss": [
            loss_row(pages.OURS, "64x2x512x512", "float32", 0.4),
            loss_row(pages.OURS, "2x14x192x192x192", "float32", 0.49),
            loss_row(pages.OURS, "64x2x512x512", "float16", 0.61),
            loss_row(pages.OURS, pages.LAUNCHES, "float32", 1.1),
            loss_row("F.cross_entropy", "64x2x512x512", "float32", 1.0),
            {**loss_row("LovaszSoftmaxLoss", "64x2x512x512", "float32", 1.0), "to_cross_entropy": None},
        ],
        "inference": [
            {"part": "network", "name": "ours", "seconds": 0.35, "first_seconds": 1.0, "peak_gib": 4.0},
            {"part": "network", "name": "reference", "seconds": 0.55, "first_seconds": 1.0, "peak_gib": 11.5},
            {"part": "whole", "name": "read", "seconds": 1.5},
            {"part": "whole", "name": "network", "seconds": 0.5},
            {"part": "lung crop", "name": "read", "seconds": 1.25},
        ],
        "training": [
            {"images": 32, "patch": 256, "way": way, "milliseconds": 9.0, "ratio": ratio, "peak_gib": 2.0}
            for way, ratio in (("reference", 1.0), ("recipe", 1.5), ("recipe", 1.45))
        ],
        "tensorrt": [
            {"name": "TensorRT", "shape": "512x512x300", "seconds": 0.1, "export_seconds": 20.0, "different": 1e-4}
        ],
    }
    for part, found_rows in rows.items():
        found["parts"][part] |= {"status": "passed", "rows": found_rows}
    found["parts"]["correctness"] |= {"status": "failed", "reason": "golden: off by one"}
    return found


def test_targets(measured):
    """The worst of what each is about."""
    values = {what: value for what, _, _, value in pages.targets(measured)}
    assert list(values.values()) == [0.49, 0.61, 4 * 0.49, 1.01, 1.1, None, 0.35, 4.0, 2.0, 1.45]
    text = pages.target_table(measured)
    assert "| loss to cross-entropy, float32 | at most 0.5 | 0.49 | yes |" in text
    assert "| loss to cross-entropy, half | at most 0.6 | 0.61 | no |" in text
    assert "| network part, compiled, s | at most 0.16 | not measured | - |" in text
    assert "| training, 32 images, to the reference | at least 1.4 | 1.45 | yes |" in text


def test_tables(measured):
    text = pages.markdown(measured)
    assert text.startswith("NVIDIA H200, driver 580.1, torch 2.11.0, triton 3.6.0, MONAI 1.6.1; 2026-12-01\n")
    assert "## correctness: failed (golden: off by one)" in text
    assert "| golden | 40 | failed | 9.5 | off by one |" in text
    assert "|  | 64x2x512x512 | 2x14x192x192x192 | 6x2x224x336 |\n| --- | ---: | ---: | ---: |" in text
    assert "| MarginCalibrationLoss | 0.4 | 0.49 | 1.1 |\n| F.cross_entropy | 1 | - | - |" in text
    assert "| LovaszSoftmaxLoss | - | - | - |" in text
    assert "| whole | 2 | 1.5 | 0.5 |\n| lung crop | 1.25 | 1.25 | - |" in text
    assert "| 32 | 256 | recipe | 9 | 1.5 | 2 |" in text
    assert "| TensorRT | 512x512x300 | 0.1 | 20 | 0.0001 |" in text


def test_a_run_that_was_stopped_gives_tables_too(measured):
    measured["parts"]["inference"] |= {"status": "failed", "reason": "stopped", "rows": []}
    del measured["parts"]["training"]
    text = pages.markdown(measured)
    assert "## inference: failed (stopped)\n\n## tensorrt" in text
    assert "| file to saved mask, s | at most 4 | not measured | - |" in text


@pytest.mark.parametrize("parts", [list(pages.TABLES), ["loss"], ["inference"], []])
def test_files(measured, parts, tmp_path, capsys):
    measured["parts"] = {name: part for name, part in measured["parts"].items() if name in parts}
    results.save(tmp_path, measured)
    pages.main([str(tmp_path), "--output", str(tmp_path / "page")])
    assert (tmp_path / "page" / "gpu.md").read_text() == pages.markdown(measured)
    assert capsys.readouterr().out.startswith("NVIDIA H200")
    assert (tmp_path / "page" / "gpu.png").read_bytes().startswith(b"\x89PNG")


def test_no_figure_of_a_small_run_is_on_the_pages(measured):
    measured["machine"]["small"] = True
    text = pages.markdown(measured)
    assert text.startswith("SMALL RUN on a CPU, which measures nothing")
    assert "target" not in text
    for page in DOCS.rglob("*.md"):
        assert "SMALL RUN" not in page.read_text(encoding="utf-8"), page
    for file in DOCS.rglob(results.NAME):
        found = json.loads(file.read_text(encoding="utf-8"))
        assert not found.get("machine", {}).get("small", False), file
