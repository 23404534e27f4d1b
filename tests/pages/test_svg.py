"""Elements of a drawing."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from markupsafe import Markup

from monai_margincal.pages.svg import drawing, element

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


def test_a_drawing_says_what_it_shows_and_stays_readable():
    root = ET.fromstring(drawing((600, 30.4), [element("rect")], "A & B"))
    assert root.get("viewBox") == "0 0 600 30"
    assert root.get("aria-label") == root[0].text == "A & B"
    assert root.get("style") == "min-width:500px;max-width:600px"
    assert [child.tag for child in root] == ["title", "rect"]
