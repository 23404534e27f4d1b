"""`margincal margins`: the table agrees with the function, the pieces are those of the recipe."""

from __future__ import annotations

import json

import pytest

from monai_margincal import ClassCounts, class_margins
from monai_margincal.cli import main
from monai_margincal.statistics.recipe_snippets import chosen_recipe

COUNTS = ClassCounts([993, 7], names=["background", "lesion"], source="raw label files")


@pytest.fixture
def file(tmp_path):
    COUNTS.to_json(tmp_path / "counts.json")
    return str(tmp_path / "counts.json")


def test_the_table_is_that_of_the_margins(file, capsys):
    assert main(["margins", file, "--tau", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].split()[:5] == ["1", "lesion", "7", "0.7", "%"]
    expected = class_margins(COUNTS, tau=2)
    assert lines[3].split()[5:] == [f"{expected.negative[1]:.6g}", f"{expected.positive[1]:.6g}"]


def test_the_recipe_says_what_chose_it(file, capsys):
    assert main(["margins", file, "--tau", "2"]) == 0
    text = capsys.readouterr().out
    recipe = chosen_recipe(COUNTS, tau=2.0)
    for line in (
        "rarest class: 1 lesion, 0.7 % of the voxels (raw counts)",
        "recipe:       below 1 %",
        f"loss:         {recipe['loss']}",
        f"decision:     {recipe['decision']}",
        "In a training script, with raw counts:",
        "In a bundle, with raw counts:",
    ):
        assert line in text.splitlines()
    assert text.endswith(recipe["bundle"])
    assert f"\n\n{recipe['python']}\n" in text


@pytest.mark.parametrize("piece", ["python", "bundle"])
def test_one_piece_alone_is_a_file(file, capsys, piece):
    assert main(["margins", file, "--normalization", "counts", "--only", piece]) == 0
    text = capsys.readouterr().out
    assert text == chosen_recipe(COUNTS, normalization="counts")[piece]
    if piece == "bundle":
        assert json.loads(text)["loss"]["normalization"] == "counts"


def test_singular_upsilon_is_one_line(tmp_path, capsys):
    ClassCounts([980, 20]).to_json(tmp_path / "counts.json")
    assert main(["margins", str(tmp_path / "counts.json"), "--upsilon", "0.01"]) == 1
    assert "upsilon must be greater than 0.219135" in capsys.readouterr().err
