"""What all figures share: no window, no global state, colours that colour-blind readers can tell apart."""

from __future__ import annotations

import io
from typing import Any

from ...extras import require

__all__ = ["COLOURS", "GROUP_COLOURS", "figure_bytes", "new_figure"]

#: Okabe-Ito
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

#: group of an objective -> colour
GROUP_COLOURS = {"baseline": "#666666", "published": "#D55E00", "ours": "#0072B2"}


def new_figure(width: float, height: float) -> Any:
    """An empty figure with automatic layout."""
    require("matplotlib", extra="experiments", purpose="drawing a figure")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def figure_bytes(figure: Any, dpi: int = 110) -> bytes:
    """The figure as PNG; the same figure gives the same bytes."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=dpi, metadata={"Software": None})
    return content.getvalue()


def group_colour(group: Any) -> str:
    """Colour of a group; grey-green for groups of the user's own."""
    return GROUP_COLOURS.get(str(group), "#009E73")
