"""Axes that fit a telephone and say what they show."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pages.svg_parts import elements

from monai_margincal.statistics.report.axes import cut, lowest_power, share_axis, x_axis


@given(st.integers(-30, -1))
def test_an_axis_of_shares_has_few_ticks_in_one_unit(lowest: int) -> None:
    unit, ticks = share_axis(lowest)
    assert 2 <= len(ticks) <= 5
    assert all("e" not in text for _, text in ticks)
    factor = 100 if unit == "%" else 1e6
    for power, text in ticks:
        assert abs(float(text.replace(",", "")) / factor / 10.0**power - 1) < 1e-9


@given(st.lists(st.floats(1e-12, 1.0), min_size=1))
def test_every_share_lies_above_the_beginning_of_its_axis(shares: list[float]) -> None:
    assert 10.0 ** lowest_power(shares) < min(shares)


def test_numbers_at_the_edge_are_not_cut_off() -> None:
    parts = x_axis([(0.0, "0"), (0.5, "50"), (1.0, "100")], "title", 0, 10)
    ticks = elements("<svg>" + "".join(parts) + "</svg>", "text", "tick")
    assert [tick.get("text-anchor") for tick in ticks] == ["start", "middle", "end", "middle"]


def test_names_are_cut_to_the_limit() -> None:
    assert cut("spleen", 6) == "spleen"
    assert cut("spleens", 6) == "splee…"
