"""Numbers that can be read aloud."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monai_margincal.pages.numbers import per_million, readable_share


@given(st.floats(1e-15, 1.0))
def test_a_share_has_no_exponent_and_is_right_to_three_figures(share: float) -> None:
    text = readable_share(share)
    number, factor = (text.removesuffix(" %"), 1e2) if text.endswith(" %") else (text.removesuffix(" per million"), 1e6)
    assert "e" not in number
    assert float(number.replace(",", "")) / factor == pytest.approx(share, rel=6e-3)


@given(st.floats(1e-15, 1.0))
def test_counts_per_million_have_three_figures(share: float) -> None:
    assert float(per_million(share).replace(",", "")) == float(f"{1e6 * share:.3g}")


@pytest.mark.parametrize(
    ("share", "text"), [(1e-4, "0.01 %"), (0.99e-4, "99 per million"), (4.72e-7, "0.472 per million")]
)
def test_below_a_hundredth_of_a_per_cent_it_is_per_million(share: float, text: str) -> None:
    assert readable_share(share) == text
