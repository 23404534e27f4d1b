"""Which class occurs in which case: the list of exceptions, and the map."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from pages.svg_parts import texts

from monai_margincal import ClassCounts
from monai_margincal.statistics.report import report_data
from monai_margincal.statistics.report.presence import MOST_LISTED, Exceptions, exceptions, presence_map


def _row(shares: list[float | None]) -> Exceptions:
    return Exceptions("a", (), (), tuple(shares))


def _cells(svg: str) -> list[tuple[str | None, list[ET.Element]]]:
    return [(cell.findtext("title"), cell.findall("rect")) for cell in ET.fromstring(svg).iter("g")]


def test_exceptions_are_those_of_the_counts():
    cases = {"b": [5, 0, 0], "a": [4, 1, 0], "c": [3, 0, 2]}
    data = report_data(ClassCounts([12, 1, 2], cases=cases))
    data["cases"]["b"]["annotated"] = [0, 2]
    background, first, second = exceptions(data)
    assert (background.absent, background.unknown, background.shares) == ((), (), (0.8, 1.0, 0.6))
    assert (first.absent, first.unknown, first.shares) == (("c",), ("b",), (0.2, None, 0.0))
    assert second.absent == ("a", "b")


def test_few_exceptions_are_listed():
    few = tuple(str(number) for number in range(MOST_LISTED))
    assert Exceptions("a", few, (), ()).are_listed
    assert not Exceptions("a", few, ("x",), ()).are_listed


def test_cells_say_what_is_known():
    cells = _cells(presence_map([_row([0.5, 0.0, None, 0.005])], [f"case_{number}" for number in range(4)]))
    assert [text for text, _ in cells] == [
        "case_0, a: 50 %", "case_1, a: absent", "case_2, a: not annotated", "case_3, a: 0.5 %",
    ]  # fmt: skip
    kinds = [[rect.get("class") for rect in rects] for _, rects in cells]
    assert kinds == [["absent", "main"], ["absent"], ["unknown"], ["absent", "main"]]
    assert [cells[place][1][1].get("fill-opacity") for place in (0, 3)] == ["1.00", "0.68"]


def test_a_shared_column_is_as_high_as_the_share_of_its_cases():
    chart = presence_map([_row([0.5, 0.0, None, None])], ["w", "x", "y", "z"], most_columns=2)
    (first, rects), (second, unknown) = _cells(chart)
    assert first == "w ... x, a: in 1 of 2 cases, 50 % there"
    whole, filled = (float(rect.get("height", "")) for rect in rects)
    assert filled == whole / 2
    assert second == "y ... z, a: not annotated"
    assert [rect.get("class") for rect in unknown] == ["unknown"]
    assert texts(chart, "tick") == ["4 cases by name, about 2 to a column"]
