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
def test_one_percent_and_five_percent_are_the_limits(share):
    expected = "below 1 %" if share < 0.01 else "1 to 5 %" if share < 0.05 else "5 % and more"
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


def points_behind(recipe: str, page: str = "regret.md") -> dict[str, float]:
    """How far a recipe is behind the best pair of the baselines, in every task that it was run in."""
    lines = (DOCS / "study" / "regret" / page).read_text(encoding="utf-8").splitlines()
    cells: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith("| "):
            # of several tables the first, which is of fine-tuned networks
            cells.setdefault(line.split(" | ")[0].strip("| "), line.strip("| ").split(" | "))
    found = {}
    for task, cell in list(zip(cells["objective, decoder"], cells[recipe], strict=True))[4:]:
        if cell.strip() != "–":
            found[task.strip()] = float(cell.replace("*", "").split(" / ")[0].replace("−", "-"))
    return found


def points_ahead(page: str) -> dict[str, float]:
    """Of margins + Tversky before cross-entropy, both by argmax."""
    ours = points_behind("margins + Tversky, base e, argmax", page)
    return {
        task: behind - ours[task]
        for task, behind in points_behind("cross-entropy, argmax", page).items()
        if task in ours
    }


def test_the_reasons_are_what_the_runs_say():
    rare, between, _ = RECIPES
    made_rarer = points_ahead("regret.md")
    ahead = points_ahead("offsets/regret.md")
    assert set(made_rarer) == {"depth-2", "depth-3", "depth-4"}
    assert len(ahead) == 10
    assert (int(min(made_rarer.values())), int(max(made_rarer.values()))) == (8, 17)
    low, high = sorted(round(ahead[task]) for task in ("textures", "lesions"))
    assert rare.reason == (
        "8 to 17 points of foreground mIoU ahead of cross-entropy in three tasks made rarer, "
        f"{low} to {high} in two that are rare by nature"
    )
    others = [ahead[task] for task in ("slices-40", "slices-160", "volumes-40", "volumes", "slices")]
    assert between.reason == (
        f"from {-min(others):.1f} points of foreground mIoU behind cross-entropy to {max(others):.1f} ahead, in five tasks "
        "of 2.6 to 4.4 %"
    )
