"""What the chart of the margins draws."""

from __future__ import annotations

from itertools import pairwise

import pytest
from pages.svg_parts import elements, in_per_cent, texts

from monai_margincal.statistics.report.margin_chart import margin_curves

CURVES = [(0.5, [0.01, 0.1]), (1.0, [0.02, 0.2])]


@pytest.mark.parametrize("margins", [[0.0, 0.0], [1.0, 0.0]], ids=["no margin", "one class"])
def test_curves_need_two_classes_and_a_margin(margins):
    frequencies = [1.0, 0.0] if margins[0] else [0.5, 0.5]
    assert margin_curves(["a", "b"], frequencies, [(1.0, margins)], 1.0) == ""


def test_the_chosen_curve_is_bold():
    chart = margin_curves(["a", "b"], [0.9, 0.1], CURVES, 1.0)
    assert len(elements(chart, "line", "curve")) == len(elements(chart, "line", "curve chosen")) == 1
    assert {"τ = 0.5", "τ = 1"} <= set(texts(chart, "value"))


def test_both_axes_say_what_they_show():
    shown = texts(margin_curves(["a", "b"], [0.9, 0.1], CURVES, 1.0), "tick")
    assert "share of the voxels, % (logarithmic)" in shown
    assert "margin ρ" in shown
    assert {"10", "100", "0.01", "0.1", "1"} <= set(shown)
    rare = margin_curves(["a", "b"], [1 - 3e-7, 3e-7], CURVES, 1.0)
    assert "of a million voxels (logarithmic)" in texts(rare, "tick")
    assert "b: 0.3 per million of the voxels, margin 0.2 at tau 1" in rare


def test_points_lie_on_logarithmic_axes():
    chart = margin_curves(["a", "b", "c"], [0.1, 0.01, 0.001], [(1.0, [0.1, 1.0, 10.0])], 1.0)
    points = [
        (in_per_cent(point, "cx"), float(point.get("cy", ""))) for point in elements(chart, "circle", "curve chosen")
    ]
    (x0, y0), (x1, y1), (x2, y2) = points
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.02)
    assert y1 - y0 == pytest.approx(y2 - y1, abs=0.2)
    assert y2 > y0  # the rarest is on top, and on the left


def test_labels_of_curves_never_lie_on_each_other():
    curves = [(tau, [1e-9 * tau, 1.0]) for tau in (0.5, 0.6, 0.7, 0.8)]
    chart = margin_curves(["a", "b"], [0.9, 1e-6], curves, 0.5)
    heights = sorted(float(text.get("y", "")) for text in elements(chart, "text", "value"))
    assert all(below - above >= 16 for above, below in pairwise(heights))
    (axis, *_) = elements(chart, "line", "grid")
    assert heights[-1] <= float(axis.get("y2", ""))


def test_a_name_without_room_is_left_to_its_tooltip():
    names = [f"a class with the name {letter}" for letter in "abcdefgh"]
    chart = margin_curves(names, [0.1 + 1e-4 * n for n in range(8)], [(1.0, [0.1] * 8)], 1.0)
    written = [text for text in texts(chart, "tick") if text is not None and text.startswith("a class")]
    assert 1 <= len(written) <= 3
    assert all(f"{name}: " in chart for name in names)
