"""What all figures share: width, the conclusion on top, the key below it, colours, and the forms in which they are stored."""

from __future__ import annotations

import base64
import io
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from ...extras import require
from ...palette import BLACK, BLUE, GREEN, GREY, ORANGE, PAGE, PURPLE, SERIES, VERMILLION, WHITE, on_dark

__all__ = ["WIDTH", "add_header", "figure_bytes", "figure_svg", "group_colours", "legend_dot", "new_figure", "tidy"]

#: of every figure, in inches: 830 pixels in a PNG, as wide as a page
WIDTH = 7.55
_DPI = 110

#: letters of the conclusion that fit into a line, and the height of its lines and of those of the key, in inches
_LETTERS, _LINE, _KEY_LINE, _SPACE = 94, 0.19, 0.21, 0.12

#: widths of a mark of the key with its space, and of a letter, in inches
_ENTRY, _LETTER = 0.45, 0.071

#: of the text of the conclusion
_HEADER = "conclusion"

_GROUP_COLOURS = {"baseline": GREY, "published": VERMILLION, "ours": BLUE}
_OTHER_GROUPS = (GREEN, PURPLE, ORANGE)


def new_figure(height: float) -> Any:
    """An empty figure with automatic layout.

    Args:
        height: in inches, without the header.
    """
    require("matplotlib", extra="experiments", purpose="drawing a figure")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def add_header(figure: Any, conclusion: str, handles: Sequence[Any] = (), columns: int = 4) -> Any:
    """Put what the figure says on top of it, and its key between that and the data; the figure grows by as much.

    Args:
        figure: with all its axes.
        conclusion: one or two sentences.
        handles: matplotlib artists with a label, row by row.
        columns: of the key, at most; fewer where the labels are too long for them.
    """
    # numbers stay with their units and intervals
    together = re.sub(r"(?<=\d) (?=[\[%])|(?<=,) (?=[+−][\d.]+\])", "\N{NO-BREAK SPACE}", conclusion)
    lines = textwrap.wrap(together, _LETTERS, break_on_hyphens=False)
    handles = list(handles)
    columns = _columns_that_fit([str(handle.get_label()) for handle in handles], columns)
    rows = -(-len(handles) // columns) if handles else 0
    body = figure.get_figheight()
    total = body + _SPACE + _LINE * len(lines) + _KEY_LINE * rows
    figure.set_size_inches(figure.get_figwidth(), total)
    figure.get_layout_engine().set(rect=(0, 0, 1, body / total))
    text = figure.text(0.008, 1 - _SPACE / 2 / total, "\n".join(lines), va="top", fontsize=9.5, fontweight="bold")
    text.set_in_layout(False)
    text.set_gid(_HEADER)
    figure.set_label(conclusion)  # read aloud in place of the picture
    text.set_linespacing(1.25)
    if handles:
        # matplotlib fills column by column
        order = [handles[place] for column in range(columns) for place in range(column, len(handles), columns)]
        legend = figure.legend(
            handles=order,
            loc="upper left",
            bbox_to_anchor=(0, 1 - (_SPACE / 2 + _LINE * len(lines)) / total),
            ncols=columns,
            frameon=False,
            fontsize=8.5,
            borderpad=0.2,
            handlelength=1.4,
            columnspacing=1.6,
        )
        legend.set_in_layout(False)
    return figure


def _columns_that_fit(labels: Sequence[str], most: int) -> int:
    """How many entries of the key fit beside each other.

    Example:
        >>> _columns_that_fit(["a", "b"], 4), _columns_that_fit(["a name of many letters, as they come"] * 4, 4)
        (2, 2)
    """
    for columns in range(min(most, len(labels)), 1, -1):
        longest = [max(map(len, labels[column::columns])) for column in range(columns)]
        if sum(_ENTRY + _LETTER * letters for letters in longest) <= WIDTH:
            return columns
    return 1


def tidy(axis: Any, grid: str = "x") -> None:
    """No box around the data, pale lines behind it."""
    axis.grid(axis=grid, alpha=0.3, linewidth=0.7)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    axis.tick_params(labelsize=8.5)


def legend_dot(colour: str, label: str, marker: str = "o", **options: Any) -> Any:
    """An entry of the key: a marker without a line."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, marker=marker, linestyle="", label=label, **options)


def group_colours(objectives: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Objective -> colour of its group, the user's own groups in colours of their own.

    Example:
        >>> colours = group_colours({"ce": {"group": "baseline"}, "a": {"group": "mine"}, "b": {}})
        >>> colours["ce"] == GREY, colours["a"] == colours["b"]
        (True, False)
    """
    groups = {name: str(entry.get("group", "other")) for name, entry in objectives.items()}
    others = [group for group in dict.fromkeys(groups.values()) if group not in _GROUP_COLOURS]
    colours = _GROUP_COLOURS | {
        group: _OTHER_GROUPS[number % len(_OTHER_GROUPS)] for number, group in enumerate(others)
    }
    return {name: colours[group] for name, group in groups.items()}


def figure_bytes(figure: Any) -> bytes:
    """The figure as a PNG; the same figure gives the same bytes."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=_DPI, metadata={"Software": None})
    return content.getvalue()


def figure_svg(figure: Any) -> str:
    """The figure as an SVG for ``src``, in light or dark colours as the page is; the same figure gives the same text.

    The conclusion is left out: it is the label of the figure, and as text on the page it fits into any width.
    """
    import matplotlib

    width, height = (72 * inches for inches in figure.get_size_inches())
    above = 0.0
    for text in [text for text in figure.texts if text.get_gid() == _HEADER]:
        text.set_visible(False)
        above = 72 * (_SPACE / 2 + _LINE * (1 + text.get_text().count("\n")))
    content = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "monai_margincal"}):
        figure.savefig(content, format="svg", metadata={"Date": None, "Creator": None})
    for text in figure.texts:
        text.set_visible(True)
    drawing = _COLOURS.sub(lambda found: f"var(--c{found[1].lower()})", content.getvalue())
    # nothing before the root, whose doctype names an address on the network
    drawing = drawing[drawing.index("<svg") :].partition(">")[2]
    shown = f'viewBox="0 {above:g} {width:g} {height - above:g}" width="{width:g}pt" height="{height - above:g}pt"'
    names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    svg = f"<svg {names} {shown}>{_STYLE}{drawing}"
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


#: colour -> the same on a dark page
_DARK = {colour: on_dark(colour) for colour in (*SERIES, GREY)} | {
    BLACK: PAGE["text"][1],
    WHITE: PAGE["page"][1],
}
_COLOURS = re.compile(f"#({'|'.join(colour[1:] for colour in _DARK)})\\b", re.IGNORECASE)


def _variables(colours: Mapping[str, str]) -> str:
    named = "".join(f"--c{colour[1:].lower()}:{shown};" for colour, shown in colours.items())
    # what has no colour of its own is black in an SVG
    return f":root{{{named}fill:{colours[BLACK]}}}"


_STYLE = (
    f"<style>{_variables({colour: colour for colour in _DARK} | {BLACK: PAGE['text'][0]})}"
    f"@media (prefers-color-scheme:dark){{{_variables(_DARK)}}}</style>"
)
