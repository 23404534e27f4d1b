"""The training benchmark runs, and its two ways of a step are one step on a CPU."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path

import monai
import pytest
import torch

_spec = importlib.util.spec_from_file_location("training_benchmark", Path(__file__).with_name("training.py"))
benchmark = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(benchmark)


@pytest.fixture(autouse=True)
def switches(monkeypatch):
    for name in ("benchmark", "deterministic"):
        monkeypatch.setattr(torch.backends.cudnn, name, getattr(torch.backends.cudnn, name))
    yield
    monai.utils.set_determinism(None)


def test_a_small_run(tmp_path, capsys):
    flags = ["--device", "cpu", "--images", "2", "3", "--patch", "32", "--steps", "1", "--rounds", "1"]
    flags += ["--features", *["8", "16", "32", "64", "128"]]
    benchmark.main([*flags, "--output", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "the target of 1.4 is a GPU's" in printed
    with (tmp_path / "training.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["images"], row["way"]) for row in rows] == [(n, w) for n in "23" for w in ("reference", "recipe")]
    for row in rows:
        assert float(row["images_per_second"]) == pytest.approx(
            int(row["images"]) / float(row["milliseconds"]) * 1e3, rel=1e-2
        )
        assert f"| {row['way']} | {float(row['milliseconds']):.1f} |" in printed
    assert [float(row["ratio"]) == 1 for row in rows] == [True, False, True, False]


def test_the_reference_takes_the_recipe_s_step(tmp_path):
    """On a CPU, without dropout, both move the weights alike."""
    keys = {"device": "cpu", "features": [8, 16, 32, 64, 128], "network_def#dropout": [0.0] * 5}
    image = torch.rand(2, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    batch = {"image": image, "label": (image > 0.9).float()}
    weights = []
    for way in ("reference", "recipe"):
        torch.manual_seed(0)
        contender = benchmark.Contender(way, "margin_dice", keys, tmp_path)
        with torch.no_grad():
            for value in contender.network.parameters():
                value.copy_(torch.rand(value.shape, generator=torch.Generator().manual_seed(1)) / 10)
        contender.step(batch)
        weights.append([value.detach().clone() for value in contender.network.parameters()])
    for first, second in zip(*weights, strict=True):
        torch.testing.assert_close(first, second)
