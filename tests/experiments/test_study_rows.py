"""The lines of a study's CSV files."""

from __future__ import annotations

from pathlib import Path

import pytest

from monai_margincal.experiments.study_rows import study_rows


def test_lines_by_column_and_further_columns_stay(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text('task,"a, b",seed\nlungs,1,2\nlivers,3,\n', encoding="utf-8")
    assert study_rows(path, ["task", "seed"], kind="results.csv") == [
        {"task": "lungs", "a, b": "1", "seed": "2"},
        {"task": "livers", "a, b": "3", "seed": ""},
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "found no columns task, seed, expected the results.csv of a study"),
        (b"task,score\nlungs,1\n", "found no columns seed, expected the results.csv of a study"),
        (b"task,seed\nlungs,1\nlivers\n", "line 3: found another number of columns than in the header"),
        (b"task,seed\nlungs,1,2\n", "line 2: found another number of columns than in the header"),
        (b"task,seed\n\xff\xfe,1\n", "cannot be read, expected the results.csv of a study"),
    ],
    ids=["empty", "a column is missing", "a line is short", "a line is long", "not UTF-8"],
)
def test_what_is_no_such_file(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "some.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"some.csv: {message}"):
        study_rows(path, ["task", "seed"], kind="results.csv")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"gone\.csv: cannot be read, expected the curves\.csv of a study"):
        study_rows(tmp_path / "gone.csv", [], kind="curves.csv")
