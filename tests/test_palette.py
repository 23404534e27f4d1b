"""One palette: every colour has one home, words can be read, classes can be told apart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import monai_margincal
from monai_margincal.palette import PAGE, SERIES, TRUTH_OUTLINE, class_colour, shaded


def _luminance(colour: str) -> float:
    """As the Web Content Accessibility Guidelines 2.2 define it."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_of_black_on_white_is_21():
    assert _contrast("#000000", "#FFFFFF") == pytest.approx(21)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("paper", ["page", "card"])
def test_words_and_bars_stand_out(scheme, paper):
    for role, colours in PAGE.items():
        if role not in ("page", "card", "line"):
            needed = 3 if role in ("main", "other") else 4.5  # bars, words
            assert _contrast(colours[scheme], PAGE[paper][scheme]) >= needed, role


def test_every_class_has_a_colour_and_18_have_their_own():
    colours = [class_colour(index) for index in range(1, 256)]
    assert len(set(colours[:18])) == 18
    assert colours[18:36] == colours[:18]
    assert all(re.fullmatch("#[0-9A-F]{6}", colour) for colour in colours)
    # a class of this colour would hide the outline
    assert TRUTH_OUTLINE not in colours


@pytest.mark.parametrize("index", [0, -1])
def test_the_background_has_no_colour(index):
    with pytest.raises(ValueError, match=f"found class index {index}, expected 1 or more"):
        class_colour(index)


def test_curves_differ():
    assert len(set(SERIES)) == len(SERIES)
    assert all(_contrast(colour, "#FFFFFF") > 2 for colour in SERIES)


def test_shades_reach_black_and_white():
    assert [shaded("#D55E00", amount) for amount in (-1, 0, 1)] == ["#000000", "#D55E00", "#FFFFFF"]


def test_no_other_file_spells_a_colour_out():
    package = Path(monai_margincal.__file__).parent
    files = [path for kind in ("*.py", "*.css", "*.html") for path in package.rglob(kind) if path.name != "palette.py"]
    found = [str(path) for path in files if re.search(r"#[0-9A-Fa-f]{6}\b", path.read_text(encoding="utf-8"))]
    assert found == []
