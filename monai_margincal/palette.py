"""The colours of pictures, figures and pages, named by what they are for.

All are made from the eight of Okabe and Ito, which readers with any kind of colour vision can tell apart (Color Universal Design,
https://jfly.uni-koeln.de/color/). Code that draws asks for a role, so that the same thing has the same colour wherever it is
shown: `class_colour` for the classes of a mask, `TRUTH_OUTLINE` for the truth around it, `SERIES` for curves on white, `PAGE` for
the variables of a page's style sheet.
"""

from __future__ import annotations

__all__ = ["PAGE", "SERIES", "TRUTH_OUTLINE", "class_colour"]

BLACK = "#000000"
WHITE = "#FFFFFF"
ORANGE = "#E69F00"
SKY_BLUE = "#56B4E9"
GREEN = "#009E73"
YELLOW = "#F0E442"
BLUE = "#0072B2"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
#: neither good nor bad: for what the others are compared with
GREY = "#666666"

#: around the true region on a picture; no class has this colour, as its mask would hide the outline
TRUTH_OUTLINE = SKY_BLUE

#: curves and dots on white paper, in order of use; yellow is too pale there
SERIES = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY_BLUE, BLACK)

_CLASSES = (ORANGE, GREEN, YELLOW, VERMILLION, PURPLE, BLUE)
_CLASS_SHADES = (0.0, -0.4, 0.5)


def shaded(colour: str, amount: float) -> str:
    """A colour moved towards black or white.

    Args:
        colour: ``"#RRGGBB"``.
        amount: from -1 (black) over 0 (unchanged) to 1 (white).

    Example:
        >>> shaded("#0072B2", -0.5), shaded("#0072B2", 0.5)
        ('#003959', '#80B8D8')
    """
    goal = 255 if amount > 0 else 0
    channels = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(channel + (goal - channel) * abs(amount)):02X}" for channel in channels)


def on_dark(colour: str) -> str:
    """A colour of `SERIES`, or grey, as it is drawn on a dark page: the dark ones lighter.

    Example:
        >>> on_dark(BLUE), on_dark(SKY_BLUE)
        ('#4C9CC9', '#56B4E9')
    """
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    # rounded weights of the luminance that people see
    return shaded(colour, 0.3) if 2 * red + 7 * green + blue < 1250 else colour


def class_colour(index: int) -> str:
    """The colour of a class on a picture, ``"#RRGGBB"``.

    Six colours, then the same six darker, then lighter: 18 classes can be told apart; from the 19th on the colours repeat.

    Args:
        index: 1 or more; class 0 is the background, which is not drawn.

    Raises:
        ValueError: ``index`` is below 1.

    Example:
        >>> [class_colour(index) for index in (1, 2, 7, 19)]
        ['#E69F00', '#009E73', '#8A5F00', '#E69F00']
    """
    if index < 1:
        raise ValueError(f"found class index {index}, expected 1 or more: the background has no colour")
    shade, colour = divmod(index - 1, len(_CLASSES))
    return shaded(_CLASSES[colour], _CLASS_SHADES[shade % len(_CLASS_SHADES)])


#: variable of the style sheet -> its colour on a light and on a dark page
PAGE = {
    # paper, boxes on it, text, less important text, rules and grids
    "page": (WHITE, "#11151A"),
    "card": ("#F6F8FA", "#1A2027"),
    "text": ("#1C2128", "#E4E9EF"),
    "muted": ("#59636E", "#9AA6B2"),
    "line": ("#D1D9E0", "#343D47"),
    # what a chart shows: the first quantity, or more than before; the second, or less than before
    "main": (BLUE, SKY_BLUE),
    "other": (VERMILLION, ORANGE),
    # text that says how severe a finding is: darker or lighter than the palette, to be readable
    "error": (shaded(VERMILLION, -0.15), shaded(VERMILLION, 0.25)),
    "warning": (shaded(YELLOW, -0.55), YELLOW),
    "info": (BLUE, SKY_BLUE),
}
