"""The rule by which loss and decision are chosen: its limits, the guide that repeats it, the runs that it rests on."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monai_margincal import ClassCounts
from monai_margincal.statistics.recipe import RECIPES, rarest_class, recipe_for

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
    (table,) = re.findall(r"\| rarest class \| loss \|.*?\n\n", page, flags=re.DOTALL)
    rows = [[cell.strip() for cell in line.strip("|\n ").split(" | ")] for line in table.splitlines()[2:] if line]
    assert [(row[0], row[-1]) for row in rows] == [(r.case, r.reason) for r in reversed(RECIPES)]


def losses_of_the_guide() -> list[tuple[str, dict[str, object]]]:
    """Name and arguments, without the counts, of every loss that the page's code builds."""
    page = (DOCS / "objectives.md").read_text(encoding="utf-8")
    found = []
    for code in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "loss_function":
                words = {word.arg: word.value for word in node.value.keywords if word.arg != "class_counts"}
                found.append((node.value.func.id, {name: ast.literal_eval(value) for name, value in words.items()}))
    return found


def test_the_code_of_the_guide_builds_what_the_rule_says():
    rare, _, frequent = RECIPES
    with_dice = {**frequent.arguments, "lambda_dice": 1.0}
    assert losses_of_the_guide() == [
        (rare.loss.rpartition(".")[2], rare.arguments),
        (frequent.loss.rpartition(".")[2], frequent.arguments),
        (frequent.loss.rpartition(".")[2], with_dice),
    ]


def points_behind(recipe: str) -> list[float | None]:
    """How far a recipe is behind the best pair of the baselines in S40, S160, V40, R2, R3, R4; None where it was not run."""
    page = (DOCS / "study" / "regret" / "regret.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| {recipe} |"))
    cells = [cell.strip() for cell in row.strip("|").split("|")][-6:]
    return [None if cell == "–" else float(cell.split(" / ")[0].replace("−", "-")) for cell in cells]


def test_the_reasons_are_what_the_runs_say():
    rare, between, frequent = RECIPES
    cross_entropy = points_behind("cross-entropy, argmax")
    ours = points_behind("margins + Tversky, base e, argmax")[3:]
    ahead = [behind - own for behind, own in zip(cross_entropy[3:], ours, strict=True)]
    assert "8 to 17 points" in rare.reason
    assert (int(min(ahead)), int(max(ahead))) == (8, 17)
    assert "8 points of foreground mIoU ahead of cross-entropy at 0.7 %" in between.reason
    assert int(ahead[0]) == 8
    assert "within 1 point of it at 2.6 % (there in base 2)" in between.reason
    in_base_2 = points_behind("margins + Tversky, base 2, argmax")[:3]
    assert max(abs(behind - own) for behind, own in zip(cross_entropy[:3], in_base_2, strict=True)) < 1
    assert "no baseline was more than 1 point of foreground mIoU ahead of cross-entropy" in frequent.reason
    assert max(cross_entropy[:3]) < 1
