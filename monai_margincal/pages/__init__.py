"""Self-contained HTML pages: one skeleton, one style sheet, light and dark, without scripts or network access."""

from __future__ import annotations

from .render import is_page, render

__all__ = ["is_page", "render"]
