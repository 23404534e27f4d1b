"""Reading a page as a browser would: tags, text, and whether every element is closed."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any


class _Page(HTMLParser):
    VOID = frozenset({"meta", "br", "img"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.texts: list[str] = []

    @property
    def text(self) -> str:
        return " ".join(self.texts)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def parse(html: str) -> _Page:
    """Tags and text of a page whose elements are all closed."""
    page = _Page()
    page.feed(html)
    page.close()
    assert page.open == []
    return page
