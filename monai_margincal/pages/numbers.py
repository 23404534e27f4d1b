"""How numbers are written on a page."""

from __future__ import annotations

from decimal import Decimal

__all__ = ["PER_MILLION_BELOW", "per_million", "readable_share", "three_figures"]

#: from here on a share is counted per million, as nobody reads a percentage of many zeros
PER_MILLION_BELOW = 1e-4

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def three_figures(value: float) -> str:
    """A number with three significant figures, as print writes it.

    Example:
        >>> [three_figures(value) for value in (0, 0.123456, 0.0000123, 1e-10)]
        ['0', '0.123', '1.23·10⁻⁵', '10⁻¹⁰']
    """
    number, _, exponent = f"{value:.3g}".partition("e")
    if not exponent:
        return number
    power = f"10{str(int(exponent)).translate(_RAISED)}"
    return power if number == "1" else f"{number}·{power}"


def per_million(share: float) -> str:
    """How many of a million a share is: three significant figures, without an exponent.

    Example:
        >>> [per_million(value) for value in (0.5, 0.000123456, 4.72e-7, 1e-12, 0)]
        ['500,000', '123', '0.472', '0.000001', '0']
    """
    number = f"{1e6 * share:.3g}"
    if "e" not in number:
        return number
    number = f"{Decimal(number):,f}"
    return number.rstrip("0").rstrip(".") if "." in number else number


def readable_share(share: float) -> str:
    """A share as a percentage with three significant figures, or per million where that would be below 0.01 %.

    Example:
        >>> [readable_share(share) for share in (0, 0.5, 0.0028645, 4.72e-7)]
        ['0 %', '50 %', '0.286 %', '0.472 per million']
    """
    if 0 < share < PER_MILLION_BELOW:
        return f"{per_million(share)} per million"
    return f"{three_figures(100 * share)} %"
