"""Pieces of an inline drawing: SVG elements whose texts and attributes are escaped."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

__all__ = ["along", "drawing", "element"]


def element(name: str, *children: str, **attributes: str | float) -> Markup:
    """One SVG element.

    Args:
        name: name of the element.
        *children: `Markup` goes in as it is, any other text is escaped.
        **attributes: ``text_anchor`` gives ``text-anchor``, ``class_`` gives ``class``; numbers are written with at most one
            decimal, which is a tenth of a pixel.

    Example:
        >>> print(element("text", "a < b", element("title", "why"), class_="tick", x=3.14159, text_anchor="end"))
        <text class="tick" x="3.1" text-anchor="end">a &lt; b<title>why</title></text>
        >>> print(element("rect", width=10))
        <rect width="10"/>
    """
    opening = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _written(value))
        for key, value in attributes.items()
    )
    if not children:
        return Markup("<{}{}/>").format(name, opening)
    return Markup("<{0}{1}>{2}</{0}>").format(name, opening, Markup("").join(children))


def drawing(height: float, parts: Iterable[str], description: str, widest: float | None = None) -> Markup:
    """A whole drawing as wide as the page leaves room: positions along x in per cent, along y in pixels, letters as they are.

    Nothing is scaled, so that letters are as large on a telephone as on a desk.

    Args:
        height: in pixels.
        parts: its elements; `along` writes their positions along x.
        description: what it shows, for readers who cannot see it.
        widest: the largest width in pixels; None for no limit.
    """
    style = {} if widest is None else {"style": f"max-width:{widest:.0f}px"}
    return element(
        "svg", element("title", description), *parts, height=height, role="img", aria_label=description, **style
    )  # fmt: skip


def along(share: float) -> str:
    """A position or length along x, as a share of the drawing's width.

    Example:
        >>> along(0.5), along(1 / 3)
        ('50%', '33.33%')
    """
    return f"{100 * share:.2f}".rstrip("0").rstrip(".") + "%"


def _written(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")
