"""What all figures share: no window, no global state, one colour per group of objectives."""

from __future__ import annotations

import io
from typing import Any

from ...extras import require
from ...palette import BLUE, GREEN, GREY, VERMILLION

__all__ = ["figure_bytes", "group_colour", "new_figure"]

_GROUP_COLOURS = {"baseline": GREY, "published": VERMILLION, "ours": BLUE}


def new_figure(width: float, height: float) -> Any:
    """An empty figure with automatic layout."""
    require("matplotlib", extra="experiments", purpose="drawing a figure")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def figure_bytes(figure: Any, dpi: int = 110) -> bytes:
    """The figure as a PNG; the same figure gives the same bytes."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=dpi, metadata={"Software": None})
    return content.getvalue()


def group_colour(group: Any) -> str:
    """Colour of a group of objectives; green for the user's own groups."""
    return _GROUP_COLOURS.get(str(group), GREEN)
