"""Figures: rows of fewer seeds apart, bars from 0, what they say on top, and their colours on a dark page."""

from __future__ import annotations

import base64
import xml.etree.ElementTree as ET
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from monai_margincal.experiments.curves import Curve
from monai_margincal.experiments.figures import (
    class_figure,
    convergence_figure,
    decoder_figure,
    difference_figure,
    figure_bytes,
    figure_svg,
    margin_figure,
    surrogate_figure,
)
from monai_margincal.experiments.figures.rows import stacked
from monai_margincal.experiments.results import Summary
from monai_margincal.experiments.scores import Comparison
from monai_margincal.palette import BLUE, PAGE

OBJECTIVES = {
    "ce": {"group": "baseline"},
    "ours": {"group": "ours"},
    "worse": {"group": "mine"},
    "brief": {"group": "another"},
}
STUDY: Any = SimpleNamespace(objectives=OBJECTIVES, label=lambda name: name, tasks={"t": {"title": "a task"}})


def _summary(
    objective: str, scores: list[float], gap: tuple[float, float, float] | None, decoder: str = "argmax"
) -> Summary:
    values = np.array(scores)
    return Summary(
        task="t",
        protocol="finetune",
        objective=objective,
        decoder=decoder,
        seeds=tuple(range(len(scores))),
        miou=values,
        per_class_iou=np.stack([np.ones(len(scores)), values], axis=1),
        recall=values,
        precision=values,
        case_iou=values,
        validation_miou=values,
        validation_loss=values,
        failed=0,
        seconds=1.0,
        peak_memory=1,
        baseline="ce",
        comparison=None if gap is None else Comparison(*gap, wins=1, ties=0, losses=0, case_wins=0.5),
        against={},
    )


CE = _summary("ce", [0.6, 0.62, 0.61, 0.6, 0.62], None)
OURS = _summary("ours", [0.63, 0.64, 0.65, 0.63, 0.65], (0.03, 0.02, 0.04))
WORSE = _summary("worse", [0.5, 0.52, 0.51, 0.5, 0.52], (-0.1, -0.12, -0.08))
BRIEF = _summary("brief", [0.9, 0.9], (0.29, 0.28, 0.3))


def test_rows_with_fewer_seeds_stand_below_a_line() -> None:
    rows = stacked([BRIEF, WORSE, OURS], lambda summary: float(summary.miou.mean()))
    assert [summary.objective for summary in rows.summaries] == ["ours", "worse", "brief"]
    assert rows.places == (0, 1, 3)
    assert rows.breaks == ((2, "2 seeds only"),)


def test_differences_are_dots_with_intervals_and_the_leader_is_named() -> None:
    figure = difference_figure(STUDY, [CE, OURS, WORSE, BRIEF])
    (axis,) = figure.axes
    dots = {line.get_ydata()[0]: line.get_xdata()[0] for line in axis.lines if line.get_marker() == "o"}
    assert dots == pytest.approx({0: 3, 1: -10, 3: 29})
    spans = {line.get_ydata()[0]: tuple(line.get_xdata()) for line in axis.lines if line.get_linewidth() == 1.6}
    assert spans[0] == pytest.approx((2, 4))
    assert any(text.get_text() == "2 seeds only" for text in axis.texts)
    assert figure.get_label() == (
        "1 of 2 objectives is ahead of the best baseline, ce (61.00 %), first ours at +3.00 [+2.00, +4.00] points; 1 behind."
    )


@pytest.mark.parametrize(
    ("gap", "said"),
    [((0.01, -0.01, 0.03), "Undecided: no objective is ahead"), ((-0.05, -0.06, -0.04), "Ce, a baseline, is first with 61.00 %")],
)  # fmt: skip
def test_no_leader_where_the_interval_has_none(gap: tuple[float, float, float], said: str) -> None:
    figure = difference_figure(STUDY, [CE, _summary("ours", [0.6] * 5, gap)])
    assert figure.get_label().startswith(said)


def test_nothing_to_compare_gives_no_figure() -> None:
    assert difference_figure(STUDY, [CE]) is None
    assert decoder_figure(STUDY, [CE, OURS]) is None
    assert class_figure(STUDY, [], ["background", "a"]) is None
    assert convergence_figure({"ce": []}) is None
    assert margin_figure({}, ["background"]) is None


def test_no_axis_that_does_not_begin_at_0_has_bars() -> None:
    histograms = {"before": np.ones((2, 96), int), "ce": np.ones((2, 96), int)}
    for figure in (class_figure(STUDY, [CE, OURS, BRIEF], ["background", "a"]), margin_figure(histograms, ["b", "a"])):
        for axis in figure.axes:
            if any(isinstance(patch, Rectangle) for patch in axis.patches):
                assert axis.get_xlim()[0] == 0


def test_the_axes_of_classes_have_the_same_length_and_the_lead_is_undecided() -> None:
    figure = class_figure(STUDY, [CE, _summary("ours", [0.62, 0.6, 0.63, 0.6, 0.61], None)], ["background", "a"])
    assert "(undecided)" in figure.get_label()
    assert figure.get_label().startswith("A: ours first with 61.2 %, +0.20 [")


def test_a_decoder_helps_only_where_the_interval_says_so() -> None:
    better = _summary("ce", [0.65, 0.67, 0.66, 0.65, 0.67], None, decoder="offsets")
    mixed = _summary("ours", [0.64, 0.63, 0.66, 0.62, 0.65], None, decoder="offsets")
    figure = decoder_figure(STUDY, [CE, OURS, better, mixed])
    assert figure.get_label() == (
        "With offsets, 1 of 2 objectives gain and 0 lose, 1 undecided (ce +5.00 [+5.00, +5.00]). 95 % intervals over the 5 seeds."
    )


def test_seeds_are_lines_beside_the_curves_and_no_bands_upon_each_other() -> None:
    curves = {
        name: [
            Curve("t", "finetune", name, str(seed), (0, 10), (0.1, end + seed / 100), (np.nan, 1.0), (2.0, 1.5))
            for seed in (0, 2)
        ]
        for name, end in (("ce", 0.5), ("ours", 0.6))
    }
    figure = convergence_figure(curves)
    assert all(not axis.collections for axis in figure.axes)
    assert figure.get_label() == (
        "At the last step the validation mIoU lies between 51.00 % (ce) and 61.00 % (ours): 10.00 points, more than the seeds "
        "differ by (sd 1.41)."
    )


def test_legends_lie_beside_the_data() -> None:
    figures = [
        surrogate_figure(),
        difference_figure(STUDY, [CE, OURS, WORSE]),
        margin_figure({"ce": np.ones((2, 96), int)}, ["b", "a"]),
    ]
    for figure in figures:
        figure.canvas.draw()
        (legend,) = figure.legends
        box = legend.get_window_extent()
        assert not any(axis.get_legend() for axis in figure.axes)
        assert not any(axis.get_window_extent().overlaps(box) for axis in figure.axes)
        assert box.x1 <= figure.bbox.width


def _svg(address: str) -> str:
    return base64.b64decode(address.partition("base64,")[2]).decode()


def test_an_svg_has_dark_colours_and_no_conclusion() -> None:
    figure = difference_figure(STUDY, [CE, OURS])
    svg = _svg(figure_svg(figure))
    assert "prefers-color-scheme:dark" in svg
    assert f"fill:{PAGE['text'][1]}" in svg
    drawn = svg.partition("</style>")[2]
    assert BLUE.lower() not in drawn, "a colour that a dark page does not change"
    assert f"var(--c{BLUE[1:].lower()})" in drawn
    top = float(ET.fromstring(svg).get("viewBox", "").split()[1])
    assert top > 10, "the lines of the conclusion are cut off at the top"
    assert figure.texts[0].get_visible()


def test_the_same_figure_gives_the_same_files() -> None:
    figures = [difference_figure(STUDY, [CE, OURS]) for _ in range(2)]
    assert figure_svg(figures[0]) == figure_svg(figures[1])
    assert figure_bytes(figures[0]) == figure_bytes(figures[1])
