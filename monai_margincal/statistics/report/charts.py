"""The charts of the report as inline SVG, coloured by the page's style sheet so that they follow dark and light."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

WIDTH = 920
_LABEL_WIDTH = 190
_VALUE_WIDTH = 170
_ROW = 26


def text_width_limit(label: str, limit: int = 26) -> str:
    """A label that fits its column; what was cut off is in the tooltip."""
    return label if len(label) <= limit else label[: limit - 1] + "…"


def shown(value: float) -> str:
    """A number in three figures."""
    return "0" if value == 0 else f"{value:.3g}".replace("e-0", "e-")


def percent(value: float) -> str:
    """A share as a percentage with at least two figures."""
    if value == 0:
        return "0 %"
    return f"{100 * value:.3g} %".replace("e-0", "e-")


def frequency_chart(
    labels: Sequence[str], voxels: Sequence[float], cases: Sequence[float | None], notes: Sequence[str]
) -> str:
    """Two bars per class on one logarithmic axis: its share of all voxels, and of the cases.

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
    left, right = _LABEL_WIDTH, WIDTH - _VALUE_WIDTH
    height = len(labels) * _ROW + 34

    def x(value: float) -> float:
        return left + (right - left) * (1 - math.log10(value) / lowest)

    parts = []
    step = max(1, -lowest // 8)
    for power in range(0, lowest - 1, -step):
        at = x(10.0**power)
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="4" y2="{height - 24}"/>')
        name = percent(10.0**power)
        parts.append(f'<text class="tick" x="{at:.1f}" y="{height - 8}" text-anchor="middle">{name}</text>')
    for row, (label, share, of_cases, note) in enumerate(zip(labels, voxels, cases, notes, strict=True)):
        top = 6 + row * _ROW
        parts.append(_row_label(label, top + 14))
        if share > 0:
            width = max(x(share) - left, 1.5)
            parts.append(f'<rect class="voxels" x="{left}" y="{top + 2}" width="{width:.1f}" height="10" rx="2"/>')
        if of_cases:
            width = max(x(max(of_cases, 10.0**lowest)) - left, 1.5)
            parts.append(f'<rect class="cases" x="{left}" y="{top + 13}" width="{width:.1f}" height="5" rx="2"/>')
        parts.append(f'<text class="value" x="{right + 8}" y="{top + 14}">{escape(note)}</text>')
    return _svg(height, parts, "Share of voxels and of cases per class, logarithmic axis")


def margin_curves(
    labels: Sequence[str], frequencies: Sequence[float], curves: Sequence[tuple[float, Sequence[float]]], chosen: float
) -> str:
    """Margin against class frequency, both logarithmic, one curve per tau; the classes are the points.

    Args:
        labels: class names.
        frequencies: share of the voxels; classes without voxels have no point.
        curves: tau and the margins rho_0k of all classes.
        chosen: the tau whose curve is drawn bold.
    """
    order = [i for i in sorted(range(len(labels)), key=lambda i: frequencies[i]) if frequencies[i] > 0]
    values = [margins[i] for _, margins in curves for i in order if margins[i] > 0]
    if len(order) < 2 or not values:
        return ""
    height, left, right, top, bottom = 330, 66, WIDTH - 90, 12, 280
    x_low, x_high = _decades([frequencies[i] for i in order])
    y_low, y_high = _decades(values)

    def x(value: float) -> float:
        return left + (right - left) * (math.log10(value) - x_low) / (x_high - x_low)

    def y(value: float) -> float:
        return bottom - (bottom - top) * (math.log10(value) - y_low) / (y_high - y_low)

    parts = []
    for power in range(x_low, x_high + 1, max(1, (x_high - x_low) // 8)):
        at = x(10.0**power)
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{top}" y2="{bottom}"/>')
        name = percent(10.0**power)
        parts.append(f'<text class="tick" x="{at:.1f}" y="{bottom + 16}" text-anchor="middle">{name}</text>')
    for power in range(y_low, y_high + 1, max(1, (y_high - y_low) // 6)):
        at = y(10.0**power)
        parts.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(
            f'<text class="tick" x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">{shown(10.0**power)}</text>'
        )
    for tau, margins in curves:
        points = [(x(frequencies[i]), y(margins[i])) for i in order if margins[i] > 0]
        if not points:
            continue
        path = " ".join(f"{'M' if n == 0 else 'L'}{px:.1f} {py:.1f}" for n, (px, py) in enumerate(points))
        kind = "curve chosen" if tau == chosen else "curve"
        parts.append(f'<path class="{kind}" d="{path}"/>')
        end_x, end_y = points[-1]
        parts.append(f'<text class="value" x="{end_x + 8:.1f}" y="{end_y + 4:.1f}">τ = {tau:g}</text>')
        for i, (px, py) in zip([i for i in order if margins[i] > 0], points, strict=True):
            tip = f"{labels[i]}: {percent(frequencies[i])} of the voxels, margin {shown(margins[i])} at tau {tau:g}"
            radius = 4 if tau == chosen else 2.5
            parts.append(
                f'<circle class="{kind}" cx="{px:.1f}" cy="{py:.1f}" r="{radius}"><title>{escape(tip)}</title></circle>'
            )
    if len(order) <= 12:
        lowest = min(curves, key=lambda curve: curve[0])[1]
        taken_until = [-1.0, -1.0, -1.0]
        for i in order:
            if lowest[i] > 0:
                at_x, at_y, name = x(frequencies[i]), y(lowest[i]), text_width_limit(labels[i], 18)
                # names of classes of nearly the same frequency go below each other
                level = next((n for n, end in enumerate(taken_until) if end < at_x), len(taken_until) - 1)
                taken_until[level] = at_x + 7.0 * len(name)
                anchor = "end" if at_x > right - 80 else "start"
                parts.append(
                    f'<text class="tick" x="{at_x:.1f}" y="{at_y + 18 + 13 * level:.1f}" text-anchor="{anchor}">'
                    f"{escape(name)}</text>"
                )
    parts.append(
        f'<text class="tick" x="{(left + right) / 2}" y="{height - 12}" text-anchor="middle">share of the voxels</text>'
    )
    return _svg(height, parts, "Margin against class frequency for several tau")


def presence_map(
    labels: Sequence[str], cases: Sequence[str], shares: Sequence[Sequence[float | None]], most_columns: int = 200
) -> str:
    """Classes as rows, cases as columns: the darker, the larger the class is in the case; hatched where nobody drew it.

    Args:
        labels: class names.
        cases: case names.
        shares: per class and case: its share of the case's voxels; 0 where absent, None where not annotated.
        most_columns: with more cases, neighbours share a column that shows their mean.
    """
    groups = _groups(len(cases), most_columns)
    cell_width = min(22.0, (WIDTH - _LABEL_WIDTH) / len(groups))
    cell_height = 18 if len(labels) <= 30 else 11
    gap = 1.0 if cell_width > 5 else 0.0
    height = len(labels) * cell_height + 24
    parts = [
        '<defs><pattern id="hatch" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<rect class="hatch" width="1.5" height="4"/></pattern></defs>'
    ]
    for row, (label, per_case) in enumerate(zip(labels, shares, strict=True)):
        top = row * cell_height
        parts.append(_row_label(label, top + cell_height * 0.72, 11 if cell_height < 15 else 13))
        largest = max((share for share in per_case if share), default=0.0)
        for column, (first, last) in enumerate(groups):
            known = [share for share in per_case[first:last] if share is not None]
            share = sum(known) / len(known) if known else None
            left = _LABEL_WIDTH + column * cell_width
            if share is None:
                style, what = 'class="cell" style="fill:url(#hatch)"', "not annotated"
            elif share == 0:
                style, what = 'class="cell absent"', "absent"
            else:
                # five decades below the largest are still visible
                depth = max(0.0, 1 + math.log10(share / largest) / 5)
                style, what = f'class="cell present" style="fill-opacity:{0.2 + 0.8 * depth:.2f}"', percent(share)
            name = cases[first] if last - first == 1 else f"{cases[first]} ... {cases[last - 1]}"
            parts.append(
                f'<rect {style} x="{left:.1f}" y="{top}" width="{cell_width - gap:.1f}" height="{cell_height - 1}">'
                f"<title>{escape(name)}, {escape(label)}: {what}</title></rect>"
            )
    note = f"{len(cases)} cases in the order of their names"
    if len(groups) < len(cases):
        note += f", about {len(cases) / len(groups):.1f} to a column"
    parts.append(f'<text class="tick" x="{_LABEL_WIDTH}" y="{height - 8}">{note}</text>')
    return _svg(height, parts, "Which class occurs in which case")


def drift_chart(labels: Sequence[str], ratios: Sequence[float | None]) -> str:
    """Frequency after the transforms over frequency before, on a logarithmic axis around 1.

    Args:
        labels: class names.
        ratios: the ratio per class: 0 where it vanishes, None where it was absent before.
    """
    logs = [abs(math.log2(ratio)) for ratio in ratios if ratio]
    reach = max(1, math.ceil(max(logs, default=1.0)))
    left, right = _LABEL_WIDTH, WIDTH - _VALUE_WIDTH
    middle = (left + right) / 2
    height = len(labels) * _ROW + 34
    parts = []
    for power in range(-reach, reach + 1, max(1, reach // 4)):
        at = middle + (right - left) / 2 * power / reach
        kind = "axis" if power == 0 else "grid"
        parts.append(f'<line class="{kind}" x1="{at:.1f}" x2="{at:.1f}" y1="4" y2="{height - 24}"/>')
        parts.append(
            f'<text class="tick" x="{at:.1f}" y="{height - 8}" text-anchor="middle">×{shown(2.0**power)}</text>'
        )
    for row, (label, ratio) in enumerate(zip(labels, ratios, strict=True)):
        top = 6 + row * _ROW
        parts.append(_row_label(label, top + 14))
        note = "absent before" if ratio is None else "vanishes" if ratio == 0 else f"×{ratio:.3g}"
        if ratio:
            end = middle + (right - left) / 2 * math.log2(ratio) / reach
            kind = "more" if end >= middle else "less"
            parts.append(
                f'<rect class="{kind}" x="{min(end, middle):.1f}" y="{top + 3}" width="{max(abs(end - middle), 1.5):.1f}" '
                'height="14" rx="2"/>'
            )
        parts.append(f'<text class="value" x="{right + 8}" y="{top + 14}">{note}</text>')
    return _svg(height, parts, "Class frequency after the transforms relative to the raw labels")


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _groups(count: int, most: int) -> list[tuple[int, int]]:
    columns = min(count, most)
    return [(column * count // columns, (column + 1) * count // columns) for column in range(columns)]


def _row_label(label: str, baseline: float, size: int = 13) -> str:
    return (
        f'<text class="label" x="{_LABEL_WIDTH - 10}" y="{baseline:.1f}" text-anchor="end" style="font-size:{size}px">'
        f"{escape(text_width_limit(label))}<title>{escape(label)}</title></text>"
    )


def _svg(height: float, parts: Sequence[str], description: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(description)}">'
        f"<title>{escape(description)}</title>{''.join(parts)}</svg>"
    )
