"""The flow chart of the page "Choose a loss", from the rule of the report: `python docs/_site/flow_chart.py` writes it.

Narrow, so that a telephone shows it at its own size. Colours are the site's where the site shows it, and follow the reader's
light or dark mode elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from monai_margincal.palette import PAGE
from monai_margincal.statistics.recipe import RECIPES

CHART = Path(__file__).parents[1] / "images" / "choose.svg"

_WIDTH = 360
_TITLE = "Which loss: by the share of the rarest class, then by recall and precision"


@dataclass(frozen=True)
class Box:
    """A box: where it is, its bold line, the lines below, and the heading that a click leads to."""

    x: int
    y: int
    width: int
    height: int
    bold: tuple[str, ...]
    plain: tuple[str, ...] = ()
    kind: str = "step"
    heading: str | None = None


def anchor(heading: str) -> str:
    """The place of a heading on the site's pages.

    Example:
        >>> anchor("Rarest class below 5 %")
        'rarest-class-below-5'
    """
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


#: heading of the page's section for each answer
RARE, FREQUENT, TRAINED = "Rarest class below 5 %", "Rarest class at 5 % and more", "Decide on validation cases"


def _boxes() -> list[Box]:
    rare, between, frequent = RECIPES
    assert rare.loss == between.loss != frequent.loss, "the chart has two ways, found another number of losses"
    return [
        Box(40, 6, 280, 62, ("How rare is your rarest class?",), ("share of all voxels,", "as margincal count prints it"), "ask"),
        Box(
            6, 124, 166, 104, ("Margins + Tversky",),
            ("in base e", f"{rare.case}: 3 to 17 points", f"{between.case}: up to 1.6"), "take", RARE,
        ),
        Box(188, 124, 166, 58, ("Cross-entropy",), ("not measured here",), "take", FREQUENT),
        Box(188, 218, 166, 58, ("Recall &lt; precision?",), ("on the validation cases",), "ask"),
        Box(188, 326, 76, 42, ("Add Dice",), (), "take", FREQUENT),
        Box(278, 326, 76, 42, ("Keep it",), (), "take", FREQUENT),
        Box(
            6, 410, 348, 80, ("Fit an offset per class on validation cases",),
            ("argmax stays where the gain is not clear of chance", "network already trained? start here"), "take", TRAINED,
        ),
    ]  # fmt: skip


#: lines between boxes, as paths with an arrow at the end
_ARROWS = (
    "M120 68 V90 H89 V118",
    "M240 68 V90 H271 V118",
    "M271 182 V212",
    "M226 276 V320",
    "M316 276 V320",
    "M89 228 V404",
    "M226 368 V404",
    "M316 368 V404",
)
#: what the arrows say: x, y, text
_WORDS = ((96, 109, "below 5 %"), (182, 109, "5 % and more"), (233, 304, "yes"), (323, 304, "no"))


def flow_chart() -> str:
    """The chart as SVG."""
    light, dark = ("".join(f"--c-{name}:{PAGE[name][mode]};" for name in PAGE) for mode in (0, 1))
    boxes = _boxes()
    height = max(box.y + box.height for box in boxes) + 6
    style = (
        f"svg.chart{{{light}}}@media(prefers-color-scheme:dark){{svg.chart{{{dark}}}}}"
        ".chart text{font:12px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;"
        "fill:var(--color-foreground-primary,var(--c-text))}"
        ".chart .bold{font-weight:600;font-size:13.5px}.chart .small{font-size:12px;"
        "fill:var(--color-foreground-secondary,var(--c-muted))}"
        ".chart rect{stroke:var(--color-foreground-border,var(--c-muted));fill:var(--color-background-secondary,var(--c-card))}"
        ".chart .take rect{stroke:var(--color-brand-primary,var(--c-main));stroke-width:2}"
        ".chart .arrow{fill:none;stroke:var(--color-foreground-secondary,var(--c-muted));stroke-width:1.5}"
        ".chart .head{fill:var(--color-foreground-secondary,var(--c-muted))}"
        ".chart a:hover rect{fill:var(--color-background-hover,var(--c-line))}"
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'role="img" aria-label="{_TITLE}">',
        f"<title>{_TITLE}</title>",
        f"<style>{style}</style>",
        '<defs><marker id="chart-head" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="8" markerHeight="8" orient="auto" '
        'markerUnits="userSpaceOnUse"><path class="head" d="M0 0 L8 4 L0 8 z"/></marker></defs>',
    ]
    lines += [f'<path class="arrow" d="{path}" marker-end="url(#chart-head)"/>' for path in _ARROWS]
    lines += [f'<text x="{x}" y="{y}">{words}</text>' for x, y, words in _WORDS]
    lines += [_drawn(box) for box in boxes]
    return "\n".join([*lines, "</svg>", ""])


def _drawn(box: Box) -> str:
    rows = [("bold", words) for words in box.bold] + [("small", words) for words in box.plain]
    middle, first = box.x + box.width / 2, box.y + box.height / 2 - 8.5 * (len(rows) - 1) + 4.5
    texts = "".join(
        f'<text class="{kind}" text-anchor="middle" x="{middle:g}" y="{first + 17 * row:g}">{words}</text>'
        for row, (kind, words) in enumerate(rows)
    )
    corner = 16 if box.kind == "ask" else 5
    shape = f'<rect x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="{corner}"/>'
    drawn = f'<g class="{box.kind}">{shape}{texts}</g>'
    return drawn if box.heading is None else f'<a href="#{anchor(box.heading)}">{drawn}</a>'


if __name__ == "__main__":
    CHART.write_text(flow_chart(), encoding="utf-8")
