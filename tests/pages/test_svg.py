"""Elements of a drawing."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from markupsafe import Markup

from monai_margincal.pages.svg import along, drawing, element

NASTY = "\"/><script>alert('1')</script>&"


def test_texts_and_attributes_are_escaped():
    root = ET.fromstring(element("g", NASTY, element("title", NASTY), id=NASTY))
    assert root.get("id") == NASTY
    assert root.text == NASTY
    assert [child.tag for child in root.iter()] == ["g", "title"]
    assert root[0].text == NASTY


@pytest.mark.parametrize(("value", "written"), [(3, "3"), (3.0, "3"), (2.25, "2.2"), (-0.26, "-0.3"), ("1e3", "1e3")])
def test_numbers_have_one_decimal_at_most(value, written):
    assert element("rect", x=value) == Markup(f'<rect x="{written}"/>')


def test_a_drawing_says_what_it_shows_and_is_not_scaled():
    root = ET.fromstring(drawing(30.4, [element("rect")], "A & B", widest=600))
    assert root.get("viewBox") is None
    assert root.get("height") == "30.4"
    assert root.get("aria-label") == root[0].text == "A & B"
    assert root.get("style") == "max-width:600px"
    assert [child.tag for child in root] == ["title", "rect"]
    assert ET.fromstring(drawing(30, [], "")).get("style") is None


@pytest.mark.parametrize(("share", "written"), [(0, "0%"), (1, "100%"), (0.1, "10%"), (2 / 3, "66.67%"), (1e-9, "0%")])
def test_positions_along_x_are_in_per_cent(share, written):
    assert along(share) == written
