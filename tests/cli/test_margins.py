"""`margincal margins`: the table and the JSON agree with the function."""

from __future__ import annotations

import json

from monai_margincal import ClassCounts, class_margins
from monai_margincal.cli import main


def test_table_and_json(tmp_path, capsys):
    counts = ClassCounts([980, 20], names=["background", "lesion"])
    counts.to_json(tmp_path / "counts.json")
    assert main(["margins", str(tmp_path / "counts.json"), "--tau", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].split()[:4] == ["1", "lesion", "20", "2.0000%"]
    expected = class_margins(counts, tau=2)
    assert json.loads(lines[-1])["margins"] == [expected.negative.tolist(), expected.positive.tolist()]


def test_singular_upsilon_is_one_line(tmp_path, capsys):
    ClassCounts([980, 20]).to_json(tmp_path / "counts.json")
    assert main(["margins", str(tmp_path / "counts.json"), "--upsilon", "0.01"]) == 1
    assert "upsilon must be greater than 0.219135" in capsys.readouterr().err
