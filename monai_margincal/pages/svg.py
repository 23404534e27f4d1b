"""Pieces of an inline drawing: SVG elements whose texts and attributes are escaped."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

__all__ = ["drawing", "element"]


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


def drawing(size: tuple[float, float], parts: Iterable[str], description: str) -> Markup:
    """A whole drawing that scales with the page, as far as its letters stay readable: from 5/6 of its size to all of it.

    Args:
        size: width and height in pixels, the units of the parts.
        parts: its elements.
        description: what it shows, for readers who cannot see it.
    """
    width, height = size
    return element(
        "svg", element("title", description), *parts,
        viewBox=f"0 0 {width:.0f} {height:.0f}", style=f"min-width:{width * 5 / 6:.0f}px;max-width:{width:.0f}px",
        role="img", aria_label=description,
    )  # fmt: skip


def _written(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")
