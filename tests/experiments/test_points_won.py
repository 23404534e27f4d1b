"""Points won against rarity: the numbers by hand, no bar where there was no run, the committed picture is of the runs."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from monai_margincal.experiments.figures import figure_bytes, points_won, points_won_figure
from monai_margincal.experiments.scored_runs import ScoredRun

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))
from _site.pictures import RARITY, STUDY, rarity_figure, shown_pictures, study_pictures  # noqa: E402

CE, OURS = ("ce", "argmax"), ("ours", "offsets")


def _run(task: str, pair: tuple[str, str], seed: int, miou: float) -> ScoredRun:
    return ScoredRun(task, "finetune", pair[0], pair[0], pair == CE, seed, pair[1], miou, None)


RUNS = [
    *(_run("common", CE, seed, miou) for seed, miou in enumerate([0.70, 0.72, 0.71])),
    *(_run("rare", CE, seed, miou) for seed, miou in enumerate([0.10, 0.20, 0.15])),
    *(_run("rare", OURS, seed, miou) for seed, miou in [(1, 0.50), (2, 0.41), (3, 0.9)]),
]


def test_difference_over_the_seeds_that_both_have() -> None:
    won = points_won(RUNS, "rare", OURS, CE)
    assert won is not None
    assert won == pytest.approx((28.0, 26.0, 30.0))
    assert points_won(RUNS, "common", OURS, CE) is None


def test_one_bar_per_task_and_recipe_that_was_run() -> None:
    figure = points_won_figure(RUNS, {"common": "5 %", "rare": "0.1 %"}, {"ours": OURS, "itself": CE}, ("ce", CE))
    (axis,) = figure.axes
    assert [bar.get_height() for group in axis.containers[::2] for bar in group] == pytest.approx([28.0, 0.0, 0.0])
    assert [text.get_text() for text in axis.get_xticklabels()] == ["5 %", "0.1 %"]


def test_a_recipe_that_was_not_run_has_a_cross_and_no_bar() -> None:
    (axis,) = points_won_figure(RUNS, {"common": "5 %"}, {"ours": OURS, "itself": CE}, ("ce", CE)).axes
    assert sum(line.get_marker() == "x" for line in axis.lines) == 1
    assert sum(len(group) for group in axis.containers[::2]) == 1


def test_the_conclusion_names_the_task_and_the_recipe() -> None:
    figure = points_won_figure(
        RUNS, {"common": "5 %\nslices", "rare": "0.1 %"}, {"ours": OURS, "itself": CE}, ("ce", CE)
    )
    assert figure.get_label() == (
        "Most is won over ce at 0.1 %: +28.00 [+26.00, +30.00] points with ours. Least at 5 %: +0.00 [+0.00, +0.00] with itself."
    )


def test_the_committed_pictures_are_of_the_committed_runs() -> None:
    _expect_same(figure_bytes(rarity_figure()), RARITY)
    figures = study_pictures("nodules")
    for name in shown_pictures()["nodules"]:
        _expect_same(figure_bytes(figures[name]), STUDY / "nodules" / "figures" / f"{name}.png")


def test_every_committed_picture_is_on_a_page() -> None:
    shown = {STUDY / study / "figures" / f"{name}.png" for study, names in shown_pictures().items() for name in names}
    assert set(STUDY.glob("*/figures/*")) == shown


def _expect_same(content: bytes, path: Path) -> None:
    drawn, committed = (
        np.asarray(Image.open(io.BytesIO(data)).convert("L"), dtype=float) for data in (content, path.read_bytes())
    )
    assert drawn.shape == committed.shape
    assert np.abs(drawn - committed).mean() < 0.5, f"make {path.name} again: python docs/_site/pictures.py"
