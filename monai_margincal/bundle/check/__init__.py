"""What can be wrong with a bundle before it runs."""

from __future__ import annotations

from .whole_bundle import check_bundle

__all__ = ["check_bundle"]
