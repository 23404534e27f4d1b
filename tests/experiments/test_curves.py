"""Training curves as CSV: read back as they were written."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from monai_margincal.experiments.curves import curves_csv, history_curve, read_curves

HISTORY = {
    "steps": [0, 10],
    "validation_miou": [0.25, 0.5],
    "training_loss": [None, 1.5],
    "validation_loss": [2.0, 1.75],
}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    curves = [
        history_curve("t", "pretraining", "", "0, fold 1", history=HISTORY),
        history_curve("t", "finetune", "ce", "0", history=HISTORY),
    ]
    path = tmp_path / "curves.csv"
    path.write_text(curves_csv(curves), encoding="utf-8")
    found = read_curves(path)
    assert [(curve.objective, curve.seed, curve.steps) for curve in found] == [
        ("", "0, fold 1", (0, 10)),
        ("ce", "0", (0, 10)),
    ]
    assert math.isnan(found[1].training_loss[0])
    assert found[1].training_loss[1:] == (1.5,)
    assert found[1].validation_miou == (0.25, 0.5)
    assert found[1].validation_loss == (2.0, 1.75)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n", r"curves\.csv: found no columns task, protocol, .*, expected the curves\.csv of a study"),
        (curves_csv([history_curve("t", "f", "o", "0", history=HISTORY)]).replace(",10,", ",x,"), "expected numbers"),
    ],
)  # fmt: skip
def test_another_file_is_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "curves.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_curves(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nothing\.csv: cannot be read"):
        read_curves(tmp_path / "nothing.csv")
