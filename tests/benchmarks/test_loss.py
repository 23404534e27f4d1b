"""The benchmark of the losses runs, and its contenders compute what their names say."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path

import pytest
import torch

from monai_margincal import MarginCalibrationLoss

_spec = importlib.util.spec_from_file_location("loss_benchmark", Path(__file__).with_name("loss.py"))
benchmark = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(benchmark)


def test_runs(tmp_path, capsys):
    benchmark.main(
        ["--device", "cpu", "--shapes", "1x3x8x8", "2x2x6", "--rounds", "1", "--no-compile", "--output", str(tmp_path)]
    )
    table = capsys.readouterr().out
    with (tmp_path / "loss.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 13
    assert (tmp_path / "loss.png").stat().st_size > 10_000
    for row in rows:
        assert row["error"] == ""
        assert float(row["milliseconds"]) > 0
        assert row["loss"] in table


def test_contenders_agree():
    """The transcriptions are the loss itself, with the same margins and weights."""
    cpu = torch.device("cpu")
    logits, labels = torch.randn(2, 4, 30), torch.randint(0, 4, (2, 1, 30))
    low, high = torch.linspace(0.01, 0.5, 4).tolist(), torch.linspace(0.5, 0.01, 4).tolist()
    ours = MarginCalibrationLoss(margins=(low, high))(logits, labels)
    torch.testing.assert_close(benchmark.plain_form(4, cpu)(logits, labels), ours)
    assert benchmark.released_formula(4, cpu)(logits, labels).item() == pytest.approx(ours.item(), rel=1e-5)
