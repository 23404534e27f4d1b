"""Axes of the report's charts: where a value lies along x, the lines and numbers there, and what the axis shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from markupsafe import Markup

from ...pages.numbers import PER_MILLION_BELOW, per_million, three_figures
from ...pages.svg import along, element

#: ticks that fit side by side on a telephone
_MOST_TICKS = 5


def share_axis(lowest: int) -> tuple[str, list[tuple[int, str]]]:
    """What a logarithmic axis of shares shows, and its ticks: in per cent, or per million where the shares are tiny.

    Args:
        lowest: the power of ten at which the axis begins; it ends at 1.

    Returns:
        the unit, and power of ten and text of each tick, from the largest.

    Example:
        >>> share_axis(-2)
        ('%', [(0, '100'), (-1, '10'), (-2, '1')])
        >>> share_axis(-6)
        ('per million', [(0, '1,000,000'), (-2, '10,000'), (-4, '100'), (-6, '1')])
    """
    powers = range(0, lowest - 1, -math.ceil(-lowest / (_MOST_TICKS - 1)))
    if 10.0**lowest < PER_MILLION_BELOW:
        return "per million", [(power, per_million(10.0**power)) for power in powers]
    return "%", [(power, three_figures(100 * 10.0**power)) for power in powers]


def lowest_power(shares: Sequence[float]) -> int:
    """The power of ten at which a logarithmic axis begins that holds all positive shares, with room for the least.

    Example:
        >>> lowest_power([1.0, 0.02, 0.0]), lowest_power([1.0, 0.011]), lowest_power([])
        (-2, -3, -1)
    """
    # a third of a decade of room, so that the rarest class still has a bar
    return min([math.floor(math.log10(share) - 0.3) for share in shares if share > 0] + [-1])


def decades(values: Sequence[float], start: float, end: float) -> tuple[Callable[[float], float], Sequence[int]]:
    """Where a positive value lies on a logarithmic axis of whole decades that holds all of them, and its powers of ten.

    Example:
        >>> place, powers = decades([0.02, 3.0], 100, 400)
        >>> place(0.1), list(powers)
        (200.0, [-2, -1, 0, 1])
    """
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)

    def place(value: float) -> float:
        return start + (end - start) * (math.log10(value) - low) / (high - low)

    return place, range(low, high + 1)


def x_axis(
    ticks: Sequence[tuple[float, str]], title: str, top: float, bottom: float, extent: tuple[float, float] = (0, 1)
) -> list[Markup]:
    """Lines from top to bottom, their numbers below, and what they are.

    Args:
        ticks: place along x, as a share of the width, and text.
        title: what the axis shows, with its unit.
        top: where the lines begin, in pixels.
        bottom: where they end.
        extent: where the axis begins and ends, as shares of the width.
    """
    parts = []
    for place, text in ticks:
        x = along(place)
        parts.append(element("line", class_="grid", x1=x, x2=x, y1=top, y2=bottom))
        # at the edge of the drawing a number would be cut off
        anchor = "start" if place < 0.02 else "end" if place > 0.98 else "middle"
        parts.append(element("text", text, class_="tick", x=x, y=bottom + 15, text_anchor=anchor))
    middle = along(sum(extent) / 2)
    return [*parts, element("text", title, class_="tick", x=middle, y=bottom + 33, text_anchor="middle")]


#: height of the numbers and the title below an axis
AXIS_HEIGHT = 40


def cut(label: str, limit: int) -> str:
    """A text that is at most so many letters long; an ellipsis says that it was cut."""
    return label if len(label) <= limit else label[: limit - 1] + "…"
