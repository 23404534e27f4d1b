"""Drawings become part of the site's pages, so that they take the page's colours and their boxes can be clicked."""

from __future__ import annotations

import re
from pathlib import Path

_DRAWING = re.compile(r"^!\[([^\]]*)\]\(([^)\s]+\.svg)\)$", flags=re.MULTILINE)


def drawings_inline(text: str, page: Path) -> str:
    """Put the SVG itself where a page shows an SVG file in a paragraph of its own.

    Args:
        text: the page, in Markdown.
        page: its file, from which its links lead.

    Returns:
        the text, in MyST Markdown.
    """

    def drawn(match: re.Match[str]) -> str:
        return f"```{{raw}} html\n{(page.parent / match[2]).read_text(encoding='utf-8').strip()}\n```"

    return _DRAWING.sub(drawn, text)
