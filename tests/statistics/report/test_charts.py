"""What the charts of one bar per class draw."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from pages.svg_parts import elements, in_per_cent, texts

from monai_margincal.statistics.report.charts import cases_chart, drift_chart, frequency_chart


def _widths(svg: str, kind: str) -> list[float]:
    return [in_per_cent(bar, "width") for bar in elements(svg, "rect", kind)]


def test_shares_are_dots_on_a_logarithmic_axis_and_no_bars_without_a_0():
    chart = frequency_chart(["a", "b", "c", "d"], [1.0, 0.1, 0.01, 0.0], ["", "", "", "none"])
    dots = [in_per_cent(dot, "cx") for dot in elements(chart, "circle", "main")]
    assert dots == pytest.approx([100, 200 / 3, 100 / 3], abs=0.01)
    assert not elements(chart, "rect", "main")
    assert texts(chart, "value")[-1] == "none"
    assert texts(chart, "tick") == ["100", "10", "1", "0.1", "share of all voxels, % (logarithmic)"]


def test_tiny_shares_are_counted_per_million():
    chart = frequency_chart(["a", "b"], [0.9999995, 4.72e-7], ["", ""])
    assert texts(chart, "tick") == ["1,000,000", "10,000", "100", "1", "of a million voxels (logarithmic)"]
    assert "e-" not in chart


def test_shares_of_the_cases_are_linear():
    chart = cases_chart(["a", "b", "c", "d"], [1.0, 0.5, 0.0, None], ["4 of 4", "2 of 4", "0 of 4", "0 of 0"])
    assert _widths(chart, "other") == [100, 50]
    assert [in_per_cent(line, "x1") for line in elements(chart, "line", "grid")] == [0, 25, 50, 75, 100]
    assert texts(chart, "tick")[:5] == ["0", "25", "50", "75", "100"]
    assert texts(chart, "value") == ["4 of 4", "2 of 4", "0 of 4", "0 of 0"]


def test_changes_go_both_ways_from_the_middle():
    chart = drift_chart(["up", "down", "gone", "new"], [2.0, 0.5, 0.0, None])
    (up,), (down,) = elements(chart, "rect", "main"), elements(chart, "rect", "other")
    assert (in_per_cent(up, "x"), in_per_cent(up, "width")) == (50, 50)
    assert (in_per_cent(down, "x"), in_per_cent(down, "width")) == (0, 50)
    assert texts(chart, "value") == ["×2", "×0.5", "vanishes", "absent before"]
    assert texts(chart, "tick")[:3] == ["×0.5", "×1", "×2"]


def test_no_change_is_still_a_line():
    assert _widths(drift_chart(["a"], [1.0]), "main") == [0.4]


def test_a_long_name_is_cut_and_whole_in_its_tooltip():
    name = "a very long name of a <class> that must be cut"
    root = ET.fromstring(drift_chart([name], [1.0]))
    (label,) = [text for text in root.iter("text") if text.find("title") is not None]
    assert label.text == f"{name[:25]}…"
    assert label.findtext("title") == name
