"""How numbers are written on a page."""

from __future__ import annotations

__all__ = ["percent", "three_figures"]


def three_figures(value: float) -> str:
    """A number with three significant figures.

    Example:
        >>> [three_figures(value) for value in (0, 0.123456, 0.0000123)]
        ['0', '0.123', '1.23e-5']
    """
    return "0" if value == 0 else f"{value:.3g}".replace("e-0", "e-")


def percent(share: float) -> str:
    """A share as a percentage with three significant figures.

    Example:
        >>> [percent(share) for share in (0, 0.5, 0.0028645)]
        ['0 %', '50 %', '0.286 %']
    """
    return f"{three_figures(100 * share)} %"
