"""One table of all validations: what a row says, what stays, what a resumed training replaces."""

from __future__ import annotations

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ignite.engine import Engine, Events

from monai_margincal.metrics import MetricsFile


def rows(file):
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


def evaluate(file, metrics, **options):
    """One evaluation with these metrics."""
    engine = Engine(lambda engine, batch: engine.state.metrics.update(metrics))
    MetricsFile(file, **options).attach(engine)
    engine.run([0])


def train(file, scores, first=1, started=None):
    """A training whose epochs from the first on are validated with these scores; resumed unless it begins at 1."""
    trainer = Engine(lambda engine, batch: engine.state.metrics.update(train_margin=0.5))
    trainer.state.epoch = first - 1
    table = MetricsFile(file, trainer=trainer)
    table.started = started or table.started
    evaluator = Engine(lambda engine, batch: engine.state.metrics.update(val_iou=scores[trainer.state.epoch - first]))
    table.attach(evaluator)
    for epoch in range(first, first + len(scores)):
        trainer.state.epoch = epoch
        trainer.state.metrics["train_margin"] = 0.5
        evaluator.run([0])


def test_the_header_names_classes_and_units(tmp_path):
    file = tmp_path / "new" / "metrics.csv"
    evaluate(file, {"val_iou_lesion": 0.25, "val_dice": 0.4, "val_iou_images_lesion": 3, "time": 1.5}, weights="m.pt")
    (row,) = rows(file)
    started = row.pop("started")
    assert len(started) == len("2026-11-28 09:00:00")
    assert row == {
        "run": "evaluation of m.pt", "epoch": "", "val_iou_lesion [0-1]": "0.25", "val_dice [0-1]": "0.4",
        "val_iou_images_lesion [images]": "3", "time": "1.5",
    }  # fmt: skip


def test_a_training_has_a_row_per_validation_with_the_parts_of_its_loss(tmp_path):
    file = tmp_path / "metrics.csv"
    train(file, [0.1, 0.2])
    assert [(row["run"], row["epoch"], row["val_iou [0-1]"]) for row in rows(file)] == [
        ("training", "1", "0.1"),
        ("training", "2", "0.2"),
    ]
    assert {row["train_margin [loss]"] for row in rows(file)} == {"0.5"}


def test_what_was_there_stays_and_a_new_metric_gets_a_column(tmp_path):
    file = tmp_path / "metrics.csv"
    evaluate(file, {"val_iou": 0.1}, weights="a.pt")
    evaluate(file, {"val_iou": 0.2, "val_dice": 0.3}, weights="b.pt")
    first, second = rows(file)
    assert (first["val_iou [0-1]"], first["val_dice [0-1]"]) == ("0.1", "")
    assert (second["val_iou [0-1]"], second["val_dice [0-1]"]) == ("0.2", "0.3")


@given(done=st.integers(1, 6), resumed=st.integers(1, 6), more=st.integers(1, 4))
def test_a_resumed_training_has_every_epoch_once(tmp_path_factory, done, resumed, more):
    """Killed after `done` validations, resumed from an earlier state: its later epochs are trained again."""
    resumed = min(done, resumed)
    file = tmp_path_factory.mktemp("metrics") / "metrics.csv"
    train(file, [0.9], started="before")
    train(file, [epoch / 10 for epoch in range(1, done + 1)], started="first")
    train(file, [epoch / 100 for epoch in range(resumed + 1, resumed + more + 1)], first=resumed + 1)
    before, *own = rows(file)
    assert (before["started"], before["val_iou [0-1]"]) == ("before", "0.9")
    assert {row["started"] for row in own} == {"first"}
    kept = [(epoch, epoch / 10) for epoch in range(1, resumed + 1)]
    again = [(epoch, epoch / 100) for epoch in range(resumed + 1, resumed + more + 1)]
    assert [(int(row["epoch"]), float(row["val_iou [0-1]"])) for row in own] == kept + again


def test_an_evaluation_in_between_is_not_taken_for_the_training(tmp_path):
    file = tmp_path / "metrics.csv"
    train(file, [0.1, 0.2], started="first")
    evaluate(file, {"val_iou": 0.3}, weights="m.pt")
    train(file, [0.4], first=2)
    assert [(row["run"], row["epoch"]) for row in rows(file)] == [
        ("training", "1"),
        ("evaluation of m.pt", ""),
        ("training", "2"),
    ]


def test_the_file_of_another_program_is_kept(tmp_path):
    file = tmp_path / "metrics.csv"
    file.write_bytes(b"val_iou,0.5\n\xff\n")
    evaluate(file, {"val_iou": 0.1}, weights="m.pt")
    assert len(rows(file)) == 1
    assert (tmp_path / "metrics.csv.outdated").read_bytes() == b"val_iou,0.5\n\xff\n"


def test_what_is_no_number_is_left_out(tmp_path):
    file = tmp_path / "metrics.csv"
    evaluate(file, {"val_iou": 0.1, "matrix": [[1, 2]]}, weights="m.pt")
    assert "matrix" not in rows(file)[0]


def test_a_folder_in_its_place_is_named_before_anything_runs(tmp_path):
    (tmp_path / "metrics.csv").mkdir()
    engine = Engine(lambda engine, batch: None)
    with pytest.raises(IsADirectoryError, match=r"metrics\.csv: cannot be written: found a folder, expected a file"):
        MetricsFile(tmp_path / "metrics.csv").attach(engine)
    assert not engine.has_event_handler(MetricsFile._append, Events.EPOCH_COMPLETED)
