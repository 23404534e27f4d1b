"""Charts of one row per class as inline SVG, coloured by the page's style sheet so that they follow dark and light."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from ...pages.numbers import three_figures
from ...pages.svg import along, drawing, element
from .axes import AXIS_HEIGHT, cut, lowest_power, share_axis, x_axis

#: a row: name and value, the bar below them
_ROW = 38
_BAR_TOP, _BAR_HEIGHT = 21, 10
#: letters of a name beside which a value still fits on a telephone
_LABEL_LETTERS = 26
_WIDEST = 640

#: where a bar begins and ends, as shares of the width
_Bar = tuple[float, float]


def frequency_chart(labels: Sequence[str], voxels: Sequence[float], notes: Sequence[str]) -> Markup:
    """One dot per class on a logarithmic axis: its share of all voxels. A bar would have to begin at 0, which is not on it.

    Args:
        labels: class names.
        voxels: share of the voxels, 0 ... 1.
        notes: text at the end of each row.
    """
    lowest = lowest_power(voxels)
    places = [1 - math.log10(share) / lowest if share > 0 else None for share in voxels]
    unit, powers = share_axis(lowest)
    ticks = [(1 - power / lowest, text) for power, text in powers]
    title = f"share of all voxels, {unit} (logarithmic)" if unit == "%" else "of a million voxels (logarithmic)"
    return _rows(
        labels,
        [(None if place is None else (place, place), "main") for place in places],
        notes,
        x_axis(ticks, title, *_extent(labels)),
        description=title,
        as_dots=True,
    )


def cases_chart(labels: Sequence[str], cases: Sequence[float | None], notes: Sequence[str]) -> Markup:
    """One bar per class on a linear axis from 0 to 100 %: the share of the cases in which it occurs.

    Args:
        labels: class names.
        cases: share of the cases, 0 ... 1; None where unknown.
        notes: text at the end of each row.
    """
    bars: list[_Bar | None] = [(0.0, share) if share else None for share in cases]
    ticks = [(quarter / 4, str(25 * quarter)) for quarter in range(5)]
    title = "cases with the class, % (linear)"
    return _rows(
        labels, [(bar, "other") for bar in bars], notes, x_axis(ticks, title, *_extent(labels)), description=title
    )


def drift_chart(labels: Sequence[str], ratios: Sequence[float | None]) -> Markup:
    """Frequency after the transforms over frequency before, on a logarithmic axis around 1.

    Args:
        labels: class names.
        ratios: the ratio per class: 0 where it vanishes, None where it was absent before.
    """
    logs = [abs(math.log2(ratio)) for ratio in ratios if ratio]
    reach = max(1, math.ceil(max(logs, default=1.0)))
    bars: list[tuple[_Bar | None, str]] = []
    for ratio in ratios:
        if ratio:
            end = 0.5 + 0.5 * math.log2(ratio) / reach
            bars.append(((min(end, 0.5), max(end, 0.5)), "main" if end >= 0.5 else "other"))
        else:
            bars.append((None, "main"))
    notes = ["absent before" if ratio is None else "vanishes" if ratio == 0 else f"×{ratio:.3g}" for ratio in ratios]
    step = math.ceil(reach / 2)
    powers = [power for power in range(-2 * step, 2 * step + 1, step) if abs(power) <= reach]
    ticks = [(0.5 + 0.5 * power / reach, f"×{three_figures(2.0**power)}") for power in powers]
    title = "share after the transforms over share before"
    top, bottom = _extent(labels)
    axis = [*x_axis(ticks, title, top, bottom), element("line", class_="axis", x1="50%", x2="50%", y1=top, y2=bottom)]
    return _rows(labels, bars, notes, axis, description=title)


def _extent(labels: Sequence[str]) -> tuple[float, float]:
    """Top and bottom of the rows, in pixels."""
    return 2, len(labels) * _ROW + 2


def _rows(
    labels: Sequence[str],
    bars: Sequence[tuple[_Bar | None, str]],
    notes: Sequence[str],
    axis: Sequence[Markup],
    description: str,
    as_dots: bool = False,
) -> Markup:
    parts = list(axis)
    for row, (label, (bar, kind), note) in enumerate(zip(labels, bars, notes, strict=True)):
        top = row * _ROW
        parts.append(element("text", cut(label, _LABEL_LETTERS), element("title", label), x=0, y=top + 16))
        parts.append(element("text", note, class_="value", x="100%", y=top + 16, text_anchor="end"))
        middle = top + _BAR_TOP + _BAR_HEIGHT / 2
        if as_dots:
            parts.append(element("line", class_="grid", x1=0, x2="100%", y1=middle, y2=middle))
        if bar is not None and as_dots:
            parts.append(element("circle", class_=kind, cx=along(bar[1]), cy=middle, r=_BAR_HEIGHT / 2))
        elif bar is not None:
            start, end = bar
            # what is too short to be seen is still a line
            width = along(max(end - start, 0.004))
            parts.append(
                element("rect", class_=kind, x=along(start), y=top + _BAR_TOP, width=width, height=_BAR_HEIGHT, rx=2)
            )
    return drawing(len(labels) * _ROW + 2 + AXIS_HEIGHT, parts, description, _WIDEST)
