"""Links that work in the repository and on the site: the site has its own pages for what lies outside of `docs`."""

from __future__ import annotations

import os
import re
from pathlib import Path

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent

_LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s:]+)(#[^)\s]*)?\)")


def links_of_site(text: str, source: Path, page: Path) -> str:
    """Let links of a page lead to pages of the site; a link to a folder becomes its text, since the site shows no folders.

    Args:
        text: the page, in Markdown.
        source: the file that holds the text, from which its links lead.
        page: the file of the page that shows it.

    Returns:
        the text with the links changed.
    """

    def changed(match: re.Match[str]) -> str:
        words, target, anchor = match[1], match[2], match[3] or ""
        file = Path(os.path.normpath(source.parent / target))
        if file.is_dir():
            return words
        if not file.is_file():  # on the web
            return match[0]
        return f"[{words}]({os.path.relpath(page_of(file), page.parent)}{anchor})"

    return _LINK.sub(changed, text)


def page_of(file: Path) -> Path:
    """The page of the site that shows a file of the repository; the file itself, which is then offered for download."""
    parts = file.relative_to(ROOT).parts if file.is_relative_to(ROOT) else ()
    if parts == ("README.md",):
        return DOCS / "index.md"
    if parts == ("CHANGELOG.md",):
        return DOCS / "reference" / "changelog.md"
    if len(parts) == 4 and parts[0] == "bundles" and parts[2] == "docs" and file.suffix == ".md":
        name = parts[1] if file.stem == "README" else f"{parts[1]}_{file.stem}"
        return DOCS / "reference" / "bundles" / f"{name}.md"
    if parts[:2] == ("docs", "notebooks") and file.suffix == ".ipynb":
        return DOCS / "reference" / "notebooks" / f"{file.stem}.md"
    return file
