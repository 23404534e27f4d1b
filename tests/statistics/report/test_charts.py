"""What the charts draw."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from monai_margincal.statistics.report.charts import drift_chart, frequency_chart, margin_curves, presence_map


def _widths(svg: str, kind: str) -> list[float]:
    return [float(bar.get("width", "nan")) for bar in ET.fromstring(svg).iter("rect") if bar.get("class") == kind]


def _texts(svg: str, kind: str) -> list[str | None]:
    return [text.text for text in ET.fromstring(svg).iter("text") if text.get("class") == kind]


def test_bars_are_logarithmic_and_the_rarest_class_has_one():
    chart = frequency_chart(["a", "b", "c", "d"], [1.0, 0.1, 0.01, 0.0], [1.0, None, 0.001, 0.0], ["", "", "", "none"])
    longest, middle, shortest = _widths(chart, "main")
    assert longest - middle == pytest.approx(middle - shortest, abs=0.11)
    assert shortest > 0
    # a share of the cases below the axis is a line at its end
    assert _widths(chart, "other") == [longest, 1.5]
    assert _texts(chart, "value")[-1] == "none"


def test_changes_go_both_ways_from_the_middle():
    chart = drift_chart(["up", "down", "gone", "new"], [2.0, 0.5, 0.0, None])
    assert _widths(chart, "main") == _widths(chart, "other")
    assert _texts(chart, "value") == ["×2", "×0.5", "vanishes", "absent before"]


def test_a_long_name_is_cut_and_whole_in_its_tooltip():
    name = "a very long name of a <class> that must be cut"
    root = ET.fromstring(drift_chart([name], [1.0]))
    (label,) = [text for text in root.iter("text") if text.find("title") is not None]
    assert label.text == f"{name[:25]}…"
    assert label.findtext("title") == name


@pytest.mark.parametrize("margins", [[0.0, 0.0], [1.0, 0.0]], ids=["no margin", "one class"])
def test_curves_need_two_classes_and_a_margin(margins):
    frequencies = [1.0, 0.0] if margins[0] else [0.5, 0.5]
    assert margin_curves(["a", "b"], frequencies, [(1.0, margins)], 1.0) == ""


def test_the_chosen_curve_is_bold():
    curves = [(0.5, [0.01, 0.1]), (1.0, [0.02, 0.2])]
    chart = margin_curves(["a", "b"], [0.9, 0.1], curves, 1.0)
    assert [path.get("class") for path in ET.fromstring(chart).iter("path")] == ["curve", "curve chosen"]
    assert {"τ = 0.5", "τ = 1"} <= set(_texts(chart, "value"))


def test_cells_say_what_is_known():
    cases = [f"case_{number}" for number in range(4)]
    chart = presence_map(["a"], cases, [[0.5, 0.0, None, 0.005]])
    cells = [cell for cell in ET.fromstring(chart).iter("rect") if cell.find("title") is not None]
    assert [cell.get("class") for cell in cells] == ["main", "absent", "unknown", "main"]
    assert [cell.get("fill-opacity") for cell in cells] == ["1.00", None, None, "0.68"]
    assert [cell.findtext("title") for cell in cells] == [
        "case_0, a: 50 %", "case_1, a: absent", "case_2, a: not annotated", "case_3, a: 0.5 %",
    ]  # fmt: skip


def test_neighbours_share_a_column_where_there_are_many():
    chart = presence_map(["a"], ["w", "x", "y", "z"], [[0.5, 0.0, None, None]], most_columns=2)
    tips = [cell.findtext("title") for cell in ET.fromstring(chart).iter("rect") if cell.find("title") is not None]
    assert tips == ["w ... x, a: 25 %", "y ... z, a: not annotated"]
    assert _texts(chart, "tick") == ["4 cases in the order of their names, about 2.0 to a column"]
