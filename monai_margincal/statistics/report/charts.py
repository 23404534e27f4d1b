"""The charts of the report as inline SVG, coloured by the page's style sheet so that they follow dark and light."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from markupsafe import Markup

from ...pages.numbers import percent, three_figures
from ...pages.svg import drawing, element

_BAR_WIDTH = 560
_VALUE_WIDTH = 170
_ROW = 26
_LABEL_LETTERS = 26


def frequency_chart(
    labels: Sequence[str], voxels: Sequence[float], cases: Sequence[float | None], notes: Sequence[str]
) -> Markup:
    """Two bars per class on one logarithmic axis: its share of all voxels, and its share of the cases.

    Args:
        labels: class names.
        voxels: share of the voxels, 0 ... 1.
        cases: share of the cases in which the class occurs; None where cases are unknown.
        notes: text at the end of each row.
    """
    positive = [value for value in voxels if value > 0]
    # a third of a decade of room, so that the rarest class still has a bar
    lowest = min([math.floor(math.log10(value) - 0.3) for value in positive], default=-1)
    lowest = min(lowest, -1)
    left = _label_width(labels)
    right = left + _BAR_WIDTH
    height = len(labels) * _ROW + 34

    def length(share: float) -> float:
        """Length of the bar; a share below the axis, or at its end, still gets a line."""
        return max((right - left) * (1 - math.log10(max(share, 10.0**lowest)) / lowest), 1.5)

    parts = []
    for power in range(0, lowest - 1, -max(1, -lowest // 8)):
        at = left + (right - left) * (1 - power / lowest)
        parts.append(_column_line(at, 4, height - 24))
        parts.append(_tick(at, height - 8, percent(10.0**power)))
    for row, (label, share, of_cases, note) in enumerate(zip(labels, voxels, cases, notes, strict=True)):
        top = 6 + row * _ROW
        parts.append(_row_label(label, left, top + 14))
        if share > 0:
            parts.append(element("rect", class_="main", x=left, y=top + 2, width=length(share), height=10, rx=2))
        if of_cases:
            parts.append(element("rect", class_="other", x=left, y=top + 13, width=length(of_cases), height=5, rx=2))
        parts.append(_row_value(note, right, top + 14))
    return drawing((right + _VALUE_WIDTH, height), parts, "Share of voxels and of cases per class, logarithmic axis")


def drift_chart(labels: Sequence[str], ratios: Sequence[float | None]) -> Markup:
    """Frequency after the transforms over frequency before, on a logarithmic axis around 1.

    Args:
        labels: class names.
        ratios: the ratio per class: 0 where it vanishes, None where it was absent before.
    """
    logs = [abs(math.log2(ratio)) for ratio in ratios if ratio]
    reach = max(1, math.ceil(max(logs, default=1.0)))
    left = _label_width(labels)
    right = left + _BAR_WIDTH
    middle = (left + right) / 2
    height = len(labels) * _ROW + 34
    parts = []
    for power in range(-reach, reach + 1, max(1, reach // 4)):
        at = middle + (right - left) / 2 * power / reach
        parts.append(_column_line(at, 4, height - 24, "axis" if power == 0 else "grid"))
        parts.append(_tick(at, height - 8, f"×{three_figures(2.0**power)}"))
    for row, (label, ratio) in enumerate(zip(labels, ratios, strict=True)):
        top = 6 + row * _ROW
        parts.append(_row_label(label, left, top + 14))
        note = "absent before" if ratio is None else "vanishes" if ratio == 0 else f"×{ratio:.3g}"
        if ratio:
            end = middle + (right - left) / 2 * math.log2(ratio) / reach
            kind = "main" if end >= middle else "other"
            width = max(abs(end - middle), 1.5)
            parts.append(element("rect", class_=kind, x=min(end, middle), y=top + 3, width=width, height=14, rx=2))
        parts.append(_row_value(note, right, top + 14))
    return drawing(
        (right + _VALUE_WIDTH, height), parts, "Class frequency after the transforms relative to the raw labels"
    )


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
    height, left, right, top, bottom = 330, 66, 830, 12, 280
    x, x_powers = _logarithmic([frequencies[i] for i in order], left, right)
    y, y_powers = _logarithmic(values, bottom, top)
    parts = []
    for power in x_powers[:: max(1, len(x_powers) // 8)]:
        at = x(10.0**power)
        parts += [_column_line(at, top, bottom), _tick(at, bottom + 16, percent(10.0**power))]
    for power in y_powers[:: max(1, len(y_powers) // 6)]:
        at = y(10.0**power)
        parts.append(element("line", class_="grid", x1=left, x2=right, y1=at, y2=at))
        parts.append(_tick(left - 8, at + 4, three_figures(10.0**power), "end"))
    for tau, margins in curves:
        kind, radius = ("curve chosen", 4) if tau == chosen else ("curve", 2.5)
        drawn = [i for i in order if margins[i] > 0]
        if not drawn:
            continue
        points = [(x(frequencies[i]), y(margins[i])) for i in drawn]
        parts.append(element("path", class_=kind, d="M" + " L".join(f"{px:.1f} {py:.1f}" for px, py in points)))
        end_x, end_y = points[-1]
        parts.append(element("text", f"τ = {tau:g}", class_="value", x=end_x + 8, y=end_y + 4))
        for i, (px, py) in zip(drawn, points, strict=True):
            share, margin = percent(frequencies[i]), three_figures(margins[i])
            tip = element("title", f"{labels[i]}: {share} of the voxels, margin {margin} at tau {tau:g}")
            parts.append(element("circle", tip, class_=kind, cx=px, cy=py, r=radius))
    if len(order) <= 12:
        lowest = min(curves, key=lambda curve: curve[0])[1]
        places = [(x(frequencies[i]), y(lowest[i]), labels[i]) for i in order if lowest[i] > 0]
        parts += _point_names(places, right)
    parts.append(_tick((left + right) / 2, height - 12, "share of the voxels"))
    return drawing((right + 90, height), parts, "Margin against class frequency for several tau")


def presence_map(
    labels: Sequence[str], cases: Sequence[str], shares: Sequence[Sequence[float | None]], most_columns: int = 200
) -> Markup:
    """Classes as rows, cases as columns: the larger the class is in the case, the darker; hatched where nobody drew it.

    Args:
        labels: class names.
        cases: case names.
        shares: per class and case: its share of the case's voxels; 0 where absent, None where not annotated.
        most_columns: with more cases, neighbours share a column that shows their mean.
    """
    groups = _groups(len(cases), most_columns)
    left = _label_width(labels)
    cell_width = min(22.0, (_BAR_WIDTH + _VALUE_WIDTH) / len(groups))
    cell_height = 18 if len(labels) <= 30 else 11
    gap = 1.0 if cell_width > 5 else 0.0
    height = len(labels) * cell_height + 24
    stripe = element("rect", class_="hatch", width=1.5, height=4)
    tile: dict[str, Any] = {"width": 4, "height": 4, "patternUnits": "userSpaceOnUse", "patternTransform": "rotate(45)"}
    parts = [element("defs", element("pattern", stripe, id="hatch", **tile))]
    for row, (label, per_case) in enumerate(zip(labels, shares, strict=True)):
        top = row * cell_height
        parts.append(_row_label(label, left, top + cell_height * 0.72, 11 if cell_height < 15 else 13))
        largest = max((share for share in per_case if share), default=0.0)
        for column, (first, last) in enumerate(groups):
            known = [share for share in per_case[first:last] if share is not None]
            share = sum(known) / len(known) if known else None
            style: dict[str, str]
            if share is None:
                style, what = {"class_": "unknown"}, "not annotated"
            elif share == 0:
                style, what = {"class_": "absent"}, "absent"
            else:
                # shares five decades below the largest are still visible
                depth = max(0.0, 1 + math.log10(share / largest) / 5)
                style, what = {"class_": "main", "fill_opacity": f"{0.2 + 0.8 * depth:.2f}"}, percent(share)
            name = cases[first] if last - first == 1 else f"{cases[first]} ... {cases[last - 1]}"
            tip = element("title", f"{name}, {label}: {what}")
            parts.append(
                element(
                    "rect",
                    tip,
                    x=left + column * cell_width,
                    y=top,
                    width=cell_width - gap,
                    height=cell_height - 1,
                    **style,
                ),
            )
    note = f"{len(cases)} cases in the order of their names"
    if len(groups) < len(cases):
        note += f", about {len(cases) / len(groups):.1f} to a column"
    parts.append(_tick(left, height - 8, note, "start"))
    return drawing((left + _BAR_WIDTH + _VALUE_WIDTH, height), parts, "Which class occurs in which case")


def _logarithmic(values: Sequence[float], start: float, end: float) -> tuple[Callable[[float], float], Sequence[int]]:
    """Where a value lies on an axis of whole decades that holds all of them, and the axis's powers of ten."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)

    def place(value: float) -> float:
        return start + (end - start) * (math.log10(value) - low) / (high - low)

    return place, range(low, high + 1)


def _point_names(points: Sequence[tuple[float, float, str]], right: float) -> list[Markup]:
    """Names below their points; where neighbours' names would overlap, they are stacked, three deep at most."""
    parts = []
    taken_until = [-1.0, -1.0, -1.0]
    for x, y, label in points:
        name = _cut(label, 18)
        level = next((n for n, end in enumerate(taken_until) if end < x), len(taken_until) - 1)
        taken_until[level] = x + 7.0 * len(name)
        parts.append(_tick(x, y + 18 + 13 * level, name, "end" if x > right - 80 else "start"))
    return parts


def _groups(count: int, most: int) -> list[tuple[int, int]]:
    columns = min(count, most)
    return [(column * count // columns, (column + 1) * count // columns) for column in range(columns)]


def _cut(label: str, limit: int) -> str:
    return label if len(label) <= limit else label[: limit - 1] + "…"


def _column_line(x: float, top: float, bottom: float, kind: str = "grid") -> Markup:
    return element("line", class_=kind, x1=x, x2=x, y1=top, y2=bottom)


def _tick(x: float, y: float, text: str, anchor: str = "middle") -> Markup:
    return element("text", text, class_="tick", x=x, y=y, text_anchor=anchor)


def _label_width(labels: Sequence[str]) -> float:
    """Width of the column that holds the names of the rows."""
    longest = max((len(label) for label in labels), default=0)
    return 20 + 7.5 * min(max(longest, 2), _LABEL_LETTERS)


def _row_label(label: str, right: float, baseline: float, size: int = 13) -> Markup:
    """The name of a row, cut to fit its column; the tooltip has it whole."""
    tip = element("title", label)
    # a style, because the style sheet's size overrides an attribute
    style = {"text_anchor": "end", "style": f"font-size:{size}px"}
    return element("text", _cut(label, _LABEL_LETTERS), tip, x=right - 10, y=baseline, **style)


def _row_value(text: str, left: float, baseline: float) -> Markup:
    return element("text", text, class_="value", x=left + 8, y=baseline)
