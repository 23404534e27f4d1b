"""The skeleton of all pages: escaped, self-contained, in the colours of the palette."""

from __future__ import annotations

import re
from pathlib import Path

import jinja2
import pytest
from pages.browser import needs_browser, width_needed
from pages.html_check import parse

import monai_margincal
from monai_margincal.pages import is_page, render
from monai_margincal.palette import PAGE

PACKAGE = Path(monai_margincal.__file__).parent
TEMPLATES = sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.html"))
NASTY = "</title><script>alert(1)</script>"


def test_the_skeleton_is_a_whole_page_that_needs_no_network():
    html = render("pages/base.html", kind="example", title="Ärzte")
    page = parse(html)
    assert page.tags[:5] == ["html", "head", "meta", "meta", "title"]
    assert "Ärzte" in page.texts
    assert not {"link", "script", "iframe", "img"} & set(page.tags)
    assert not re.search(r"https?:|url\((?!#)|@import", html)


def test_colours_come_from_the_palette_in_light_dark_and_print():
    html = render("pages/base.html", kind="example", title="")
    schemes = re.findall(r":root \{ (--[^}]*)\}", html)
    for scheme, place in zip(schemes, (0, 1, 0), strict=True):
        variables = dict(re.findall(r"--(\w+): ([^;]+);", scheme))
        assert variables == {name: colours[place] for name, colours in PAGE.items()}
    assert set(re.findall(r"var\(--(\w+)\)", html)) <= set(PAGE)


def test_text_is_escaped():
    assert parse(render("pages/base.html", kind="example", title=NASTY)).tags.count("script") == 0


def test_what_is_missing_is_an_error():
    with pytest.raises(jinja2.UndefinedError, match="'title' is undefined"):
        render("pages/base.html", kind="example")
    with pytest.raises(jinja2.TemplateNotFound, match=r"pages/nothing\.html"):
        render("pages/nothing.html")


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_report_extends_the_skeleton_and_lies_beside_its_module(template):
    path = PACKAGE / template
    text = path.read_text(encoding="utf-8")
    assert "|safe" not in text.replace(" ", "")
    if path.name != "base.html":
        assert text.startswith('{% extends "pages/base.html" %}\n')
        assert "<style" not in text
        assert f'"{template}"' in path.with_suffix(".py").read_text(encoding="utf-8")


def test_a_page_is_known_again_by_its_kind(tmp_path):
    path = tmp_path / "page.html"
    path.write_text(render("pages/base.html", kind="example", title=""), encoding="utf-8")
    assert is_page(path, "example")
    assert not is_page(path, "report")
    path.write_bytes(b"\xff\xfe")
    assert not is_page(path, "example")


@needs_browser
@pytest.mark.slow
def test_a_page_that_is_too_wide_for_a_telephone_is_noticed(tmp_path):
    page = tmp_path / "page.html"
    wide = render("pages/base.html", kind="example", title="").replace(
        "</main>", "<p style='width:500px'>wide</p></main>"
    )
    page.write_text(wide, encoding="utf-8")
    assert width_needed(page) == 516  # with the margin on the left
