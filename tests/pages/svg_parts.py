"""What a drawing holds, for the tests of the charts."""

from __future__ import annotations

import xml.etree.ElementTree as ET


def elements(svg: str, tag: str, kind: str) -> list[ET.Element]:
    """Elements of this tag and class, in order."""
    return [found for found in ET.fromstring(svg).iter(tag) if found.get("class") == kind]


def texts(svg: str, kind: str) -> list[str | None]:
    """Texts of this class, in order."""
    return [text.text for text in elements(svg, "text", kind)]


def in_per_cent(element: ET.Element, name: str) -> float:
    """A position along x."""
    value = element.get(name, "")
    assert value.endswith("%")
    return float(value[:-1])
