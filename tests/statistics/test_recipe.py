"""The rule by which loss and decision are chosen: its limits, the guide that repeats it, the runs that it rests on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monai_margincal import ClassCounts
from monai_margincal.statistics.recipe import DECISION, RECIPES, rarest_class, recipe_for

DOCS = Path(__file__).parents[2] / "docs"


@given(st.floats(0, 1, exclude_min=True))
def test_one_percent_and_two_percent_are_the_limits(share):
    expected = "below 1 %" if share < 0.01 else "1 to 2 %" if share < 0.02 else "2 % and more"
    assert recipe_for(share).case == expected


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=6))
def test_the_rarest_class_is_the_smallest_one_that_is_there(voxels):
    present = [count for count in voxels[1:] if count]
    if not present:
        with pytest.raises(ValueError, match="found no voxel of any class but the first"):
            rarest_class(ClassCounts(voxels))
        return
    label, share = rarest_class(ClassCounts(voxels))
    assert voxels[int(label)] == min(present)
    assert share == pytest.approx(min(present) / sum(voxels))


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, float("nan")])
def test_a_share_outside_its_range_is_refused(share):
    with pytest.raises(ValueError, match=r"share: found .*, expected a number in \(0, 1\]"):
        recipe_for(share)


def test_the_guide_repeats_the_table():
    page = (DOCS / "objectives.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"\| rarest class \|.*?\n\n", page, flags=re.DOTALL)
    rows = [[cell.strip() for cell in line.strip("|\n ").split(" | ")] for line in table.splitlines()[2:] if line]
    assert rows == [[r.case, f"`{r.call}`", DECISION, r.reason] for r in reversed(RECIPES)]


def points_behind(recipe: str) -> list[float | None]:
    """How far a recipe is behind the best pair of the baselines in S40, S160, V40, R2, R3, R4; None where it was not run."""
    page = (DOCS / "study" / "regret" / "regret.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| {recipe} |"))
    cells = [cell.strip() for cell in row.strip("|").split("|")][-6:]
    return [None if cell == "–" else float(cell.split(" / ")[0].replace("−", "-")) for cell in cells]


def test_the_reasons_are_what_the_runs_say():
    rare, between, frequent = RECIPES
    measured = points_behind("margins + Tversky, base e, IoU threshold")[3:]
    assert "at most 0.5 behind" in rare.reason
    assert max(measured) <= 0.5
    ahead = [
        behind - ours
        for behind, ours in zip(
            points_behind("cross-entropy, argmax")[3:],
            points_behind("margins + Tversky, base e, argmax")[3:],
            strict=True,
        )
    ]
    assert "8 to 17 points" in rare.reason
    assert (int(min(ahead)), int(max(ahead))) == (8, 17)
    assert "at most 0.3 on the side above (there in base 2)" in between.reason
    assert max(points_behind("margins + Tversky, base 2, IoU threshold")[:3]) <= 0.3
    assert "at most 0.5 points behind" in frequent.reason
    assert max(points_behind("cross-entropy, IoU threshold")[:3]) <= 0.5
