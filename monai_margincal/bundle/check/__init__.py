"""What can be wrong with a bundle before it runs."""

from __future__ import annotations

from .check_bundle import check_bundle
from .finding import Finding

__all__ = ["Finding", "check_bundle"]
