"""The metrics of every validation and evaluation in one CSV file, a row each, under a header that names classes and units."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ignite.engine import Events

from ..files import expect_writable, locked, replacing
from ..processes import own_rank

if TYPE_CHECKING:
    from ignite.engine import Engine

#: what a row is about, before its metrics
_KEYS = ["run", "started", "epoch"]
#: word in a metric's name -> its unit; the first that is found
_UNITS = {
    "images": "images", "margin": "loss", "overlap": "loss",
    "iou": "0-1", "dice": "0-1", "recall": "0-1", "precision": "0-1",
}  # fmt: skip


class MetricsFile:
    """Append the metrics of an evaluator to a CSV file whenever it has finished.

    Columns: ``run`` ("training", or "evaluation of FILE"), ``started`` (when the run began, UTC), ``epoch`` (of a training), then
    one per metric, with its unit in brackets where that is known, such as ``val_iou_lesion [0-1]`` or ``val_iou_images_lesion
    [images]``. The rows of earlier runs stay, and a metric that is new gets a column, which is empty in the rows before. A
    training that is resumed goes on where the state that it was resumed from stands: the rows of later epochs are replaced as
    these are trained again. A file with another header is kept as ``NAME.outdated``. The file is complete at all times; other
    processes may append to it too.

    Args:
        file: the CSV file.
        weights: what is evaluated, for the column ``run``; None in a training.
        trainer: the training whose epochs are validated; its own metrics get columns as well.

    Raises:
        OSError: on attachment: the file cannot be written.

    Example:
        >>> import tempfile
        >>> from ignite.engine import Engine
        >>> file = Path(tempfile.mkdtemp(), "metrics.csv")
        >>> found = {"val_iou_lesion": 0.5, "val_iou_images_lesion": 3}
        >>> evaluator = Engine(lambda engine, batch: engine.state.metrics.update(found))
        >>> MetricsFile(file, weights="model.pt").attach(evaluator)
        >>> state = evaluator.run([0])
        >>> header, row = csv.reader(file.open())
        >>> dict(zip(header, row)) | {"started": "2026-11-28 09:00:00"}  # doctest: +NORMALIZE_WHITESPACE
        {'run': 'evaluation of model.pt', 'started': '2026-11-28 09:00:00', 'epoch': '', 'val_iou_lesion [0-1]': '0.5',
         'val_iou_images_lesion [images]': '3'}
    """

    def __init__(
        self,
        file: str | os.PathLike[str],
        weights: str | os.PathLike[str] | None = None,
        trainer: Engine | None = None,
    ) -> None:
        self.file = Path(file)
        self.trainer = trainer
        self.run = "training" if weights is None else f"evaluation of {os.fspath(weights)}"
        self.started = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())

    def attach(self, engine: Engine) -> None:
        """Write at the end of every epoch of an evaluator, on the first process."""
        if own_rank() > 0:
            return
        expect_writable(self.file)
        if self.trainer is not None and self.trainer.state.epoch > 0:
            self.started = _start_of_training(_rows(self.file), self.trainer.state.epoch) or self.started
        engine.add_event_handler(Events.EPOCH_COMPLETED, self._append)

    def _append(self, engine: Engine) -> None:
        metrics: dict[str, float] = {**engine.state.metrics}
        epoch = ""
        if self.trainer is not None:
            metrics = {**self.trainer.state.metrics, **metrics}
            epoch = str(self.trainer.state.epoch)
        row = dict(zip(_KEYS, (self.run, self.started, epoch), strict=True))
        row |= {_titled(name): repr(value) for name, value in metrics.items() if isinstance(value, int | float)}
        with locked(self.file):
            rows = [known for known in _rows(self.file) if not self._is_trained_again(known)]
            if self.file.exists() and not _is_own(self.file):
                self.file.replace(self.file.with_name(f"{self.file.name}.outdated"))
            _write([*rows, row], self.file)

    def _is_trained_again(self, row: Mapping[str, str]) -> bool:
        is_this_run = self.trainer is not None and (row["run"], row["started"]) == (self.run, self.started)
        return is_this_run and int(row["epoch"]) >= self.trainer.state.epoch  # type: ignore[union-attr]


def _titled(name: str) -> str:
    """The name of a metric with its unit."""
    return next((f"{name} [{unit}]" for word, unit in _UNITS.items() if word in name.split("_")), name)


def _is_own(file: Path) -> bool:
    with file.open(newline="", encoding="utf-8", errors="replace") as opened:
        return next(csv.reader(opened), [])[: len(_KEYS)] == _KEYS


def _rows(file: Path) -> list[dict[str, str]]:
    """The rows of a file of this kind; none if it does not exist, or is another's."""
    if not file.exists() or not _is_own(file):
        return []
    with file.open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened, restval=""))


def _start_of_training(rows: list[dict[str, str]], epoch: int) -> str | None:
    """When the training began whose state after an epoch is taken up: the last one that came so far."""
    starts = [row["started"] for row in rows if row["run"] == "training" and int(row["epoch"]) <= epoch]
    return starts[-1] if starts else None


def _write(rows: list[dict[str, str]], file: Path) -> None:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with replacing(file) as beside, beside.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.DictWriter(opened, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
