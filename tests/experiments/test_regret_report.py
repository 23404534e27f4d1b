"""Several results.csv together: what is read, refused and written."""

from __future__ import annotations

from pathlib import Path

import pytest

from monai_margincal.cli import main
from monai_margincal.experiments.figures import regret_figure, regret_says
from monai_margincal.experiments.regret import regret_rows
from monai_margincal.experiments.regret_report import write_regret_report
from monai_margincal.experiments.regret_table import regret_table
from monai_margincal.experiments.scored_runs import read_scored_runs

HEAD = "task,protocol,objective,label,group,seed,decoder,miou,cell\n"


def _results(path: Path, task: str, scores: dict[str, list[float]], protocol: str = "finetune") -> Path:
    lines = [
        f"{task},{protocol},{name},{name.upper()},{'baseline' if name != 'ours' else 'ours'},{seed},argmax,{value},x\n"
        for name, values in scores.items()
        for seed, value in enumerate(values)
    ]
    path.write_text(HEAD + "".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def two(tmp_path):
    a = _results(tmp_path / "a.csv", "big", {"ce": [0.70, 0.72], "dice": [0.69, 0.70], "ours": [0.70, 0.71]})
    b = _results(tmp_path / "b.csv", "rare", {"ce": [0.10, 0.12], "dice": [0.40, 0.44], "ours": [0.43, 0.39]})
    return a, b


def test_worst_case_over_the_tasks_of_two_studies(two, tmp_path, capsys):
    assert main(["regret", *map(str, two), "--output", str(tmp_path / "out")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[2:5]] == [
        ["OURS,", "argmax", "2", "1.00", "rare", "1.00"],
        ["DICE,", "argmax", "2", "1.50", "big", "1.50"],
        ["CE,", "argmax", "2", "31.00", "rare", "31.00"],
    ]
    assert (tmp_path / "out" / "finetune_regret.png").read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / "out" / "regret.md").read_text(encoding="utf-8")
    assert "| OURS, argmax | 2 of 2 | **+1.00 [−3.00, +5.00], rare** |" in text
    assert "bootstrap over seeds; 2 seeds." in text


def test_a_recipe_of_one_task_only_is_said_to_be_one(two, tmp_path):
    third = _results(tmp_path / "c.csv", "third", {"ce": [0.5], "new": [0.6]})
    table = regret_table(regret_rows(read_scored_runs([*two, third])), "fine-tuned", with_cases=False)
    rows = {row[0]: row for row in table.rows}
    assert rows["NEW, argmax"][1] == "1 of 3"
    assert rows["NEW, argmax"][3:] == ("–", "–", "–", "+0.00 / –")
    assert rows["OURS, argmax"][1] == "2 of 3"


def test_decoders_that_decide_alike_share_a_row_of_the_figure(two):
    path = two[0]
    path.write_text(
        path.read_text() + path.read_text().split("\n", 1)[1].replace("argmax", "offsets"), encoding="utf-8"
    )
    rows = regret_rows(read_scored_runs([path]))
    assert len(rows) == 6
    (axis,) = regret_figure(rows).axes
    assert [tick.get_text() for tick in axis.get_yticklabels()] == [
        f"{name}, argmax or offsets" for name in ("CE", "OURS", "DICE")
    ]
    assert "Next: OURS, argmax or offsets" in regret_says(rows)


def test_protocols_are_kept_apart(two, tmp_path):
    scratch = _results(tmp_path / "c.csv", "big", {"ce": [0.5, 0.5], "ours": [0.6, 0.6]}, "scratch")
    rows, written = write_regret_report([*two, scratch], tmp_path / "out")
    assert [path.name for path in written] == ["regret.md", "finetune_regret.png", "scratch_regret.png"]
    assert len(rows) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,seed\na,1\n", r"c\.csv: found no columns protocol, .*group.*, expected the results\.csv of a study"),
        (HEAD, r"c\.csv: found no run, expected at least one"),
        (HEAD + "a,finetune,ce,CE,baseline,first,argmax,0.5,x\n", r"c\.csv: line 2: .*'first'.*expected a seed"),
        (
            HEAD + "big,finetune,ce,CE,baseline,1,argmax,0.5,x\n",
            r"c\.csv: found big/finetune/ce/1/argmax again, .*a\.csv",
        ),
    ],
)
def test_other_files_are_refused_by_name(two, tmp_path, text, message):
    (tmp_path / "c.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_scored_runs([*two, tmp_path / "c.csv"])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises((OSError, ValueError), match=r"none\.csv"):
        read_scored_runs([tmp_path / "none.csv"])


def test_results_without_a_baseline_are_refused(tmp_path):
    results = _results(tmp_path / "a.csv", "big", {"ours": [0.5]})
    with pytest.raises(ValueError, match=r"a\.csv: found no run of the group 'baseline'"):
        write_regret_report([results], tmp_path / "out")
