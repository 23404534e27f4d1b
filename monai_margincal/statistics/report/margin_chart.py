"""The chart of margins against class frequency."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from markupsafe import Markup

from ...pages.numbers import readable_share, three_figures
from ...pages.svg import along, drawing, element
from .axes import AXIS_HEIGHT, cut, decades, share_axis, x_axis

#: the plot within the drawing: along x as shares of the width, along y in pixels
_LEFT, _RIGHT, _TOP, _BOTTOM = 0.17, 0.83, 56, 300
_WIDEST = 640
#: rows of names above the plot, and the height of a letter's line
_LEVELS, _LINE = 3, 16
#: width of a letter, as a share of the width of a telephone
_LETTER = 0.022
_NAMED_CLASSES = 12


def margin_curves(
    labels: Sequence[str], frequencies: Sequence[float], curves: Sequence[tuple[float, Sequence[float]]], chosen: float
) -> Markup:
    """Margin against class frequency, both logarithmic, one curve per tau; the classes are the points.

    Args:
        labels: class names.
        frequencies: share of the voxels; classes without voxels have no point.
        curves: tau and the margins rho_0k of all classes.
        chosen: the tau whose curve is drawn bold.

    Returns:
        empty where fewer than two classes have voxels, or none has a margin.
    """
    order = [i for i in sorted(range(len(labels)), key=lambda i: frequencies[i]) if frequencies[i] > 0]
    values = [margins[i] for _, margins in curves for i in order if margins[i] > 0]
    if len(order) < 2 or not values:
        return Markup("")
    x, x_powers = decades([*(frequencies[i] for i in order), 1.0], _LEFT, _RIGHT)
    y, powers = decades(values, _BOTTOM, _TOP)
    unit, ticks = share_axis(x_powers[0])
    title = "share of the voxels, % (logarithmic)" if unit == "%" else "of a million voxels (logarithmic)"
    parts = x_axis(
        [(x(10.0**power), text) for power, text in ticks], title, _TOP, bottom=_BOTTOM, extent=(_LEFT, _RIGHT)
    )
    for power in powers[:: max(1, len(powers) // 6)]:
        at = y(10.0**power)
        parts.append(element("line", class_="grid", x1=along(_LEFT), x2=along(_RIGHT), y1=at, y2=at))
        parts.append(
            element(
                "text", three_figures(10.0**power), class_="tick", x=along(_LEFT - 0.02), y=at + 4, text_anchor="end"
            )
        )
    parts.append(
        element("text", "margin ρ", element("tspan", "0k", class_="sub"), " (logits)", class_="tick", x=0, y=14)
    )
    if len(order) <= _NAMED_CLASSES:
        parts += _names([(x(frequencies[i]), labels[i]) for i in order])
    ends = []
    for tau, margins in curves:
        drawn = [i for i in order if margins[i] > 0]
        points = [(x(frequencies[i]), y(margins[i])) for i in drawn]
        parts += _curve(points, "curve chosen" if tau == chosen else "curve")
        for i, (px, py) in zip(drawn, points, strict=True):
            share, margin = readable_share(frequencies[i]), three_figures(margins[i])
            tip = element("title", f"{labels[i]}: {share} of the voxels, margin {margin} at tau {tau:g}")
            kind, radius = ("curve chosen", 4) if tau == chosen else ("curve", 3)
            parts.append(element("circle", tip, class_=kind, cx=along(px), cy=py, r=radius))
        if points:
            ends.append((points[-1][1], f"τ = {tau:g}"))
    for at, text in _apart(ends):
        parts.append(element("text", text, class_="value", x=along(_RIGHT + 0.02), y=at + 4))
    return drawing(_BOTTOM + AXIS_HEIGHT, parts, "Margin against class frequency for several tau", _WIDEST)


def _curve(points: Sequence[tuple[float, float]], kind: str) -> list[Markup]:
    return [
        element("line", class_=kind, x1=along(x1), y1=y1, x2=along(x2), y2=y2)
        for (x1, y1), (x2, y2) in pairwise(points)
    ]


def _names(places: Sequence[tuple[float, str]]) -> list[Markup]:
    """Names above their points; one that would lie on its neighbours has none, as its point's tooltip has it."""
    parts = []
    taken_until = [-1.0] * _LEVELS
    for x, label in places:
        name = cut(label, 16)
        half = _LETTER * len(name) / 2
        middle = min(max(x, half), 1 - half)
        # the title of the axis is in the first line, on the left
        free = [
            n for n in range(_LEVELS) if taken_until[n] < middle - half and (n < _LEVELS - 1 or middle - half > 0.4)
        ]
        if not free:
            continue
        taken_until[free[0]] = middle + half
        baseline = _TOP - 8 - _LINE * free[0]
        parts.append(element("line", class_="grid", x1=along(x), x2=along(x), y1=baseline + 3, y2=_BOTTOM))
        parts.append(
            element(
                "text", name, element("title", label), class_="tick", x=along(middle), y=baseline, text_anchor="middle"
            )
        )
    return parts


def _apart(ends: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """Texts from top to bottom, moved as far as they would lie on each other, or below the plot."""
    ordered = sorted(ends)
    placed: list[tuple[float, str]] = []
    for number, (at, text) in enumerate(ordered):
        lowest = _BOTTOM - 4 - _LINE * (len(ordered) - 1 - number)
        placed.append((min(max(at, placed[-1][0] + _LINE) if placed else at, lowest), text))
    return placed
