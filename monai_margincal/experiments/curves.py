"""The training curves of a study as curves.csv, so that its figures of convergence can be drawn without its cells."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .study_rows import study_rows

__all__ = ["Curve", "curves_csv", "history_curve", "read_curves"]

_COLUMNS = ("task", "protocol", "objective", "seed", "step", "validation_miou", "training_loss", "validation_loss")


@dataclass(frozen=True)
class Curve:
    """The validation curve of one run.

    Attributes:
        task: name.
        protocol: "pretraining", "finetune" or "scratch".
        objective: name; empty for the pre-training.
        seed: of the run, with its fold if there are several: ``"0"``, ``"0, fold 2"``.
        steps: at which the curve has points, from 0.
        validation_miou: fractions of 1.
        training_loss: mean since the point before; NaN at step 0.
        validation_loss: of the same objective.
    """

    task: str
    protocol: str
    objective: str
    seed: str
    steps: tuple[int, ...]
    validation_miou: tuple[float, ...]
    training_loss: tuple[float, ...]
    validation_loss: tuple[float, ...]


def history_curve(task: str, protocol: str, objective: str, seed: str, *, history: Mapping[str, Any]) -> Curve:
    """The curve in a record's history, as `History.to_dict` gives it."""
    numbers = {
        name: tuple(float("nan") if value is None else float(value) for value in history[name])
        for name in ("validation_miou", "training_loss", "validation_loss")
    }
    return Curve(task, protocol, objective, seed, steps=tuple(history["steps"]), **numbers)


def curves_csv(curves: Iterable[Curve]) -> str:
    """One line per point."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for curve in curves:
        points = zip(curve.steps, curve.validation_miou, curve.training_loss, curve.validation_loss, strict=True)
        for step, *numbers in points:
            shown = [f"{number:.6g}" for number in numbers]
            writer.writerow([curve.task, curve.protocol, curve.objective, curve.seed, step, *shown])
    return text.getvalue()


def read_curves(path: str | os.PathLike[str]) -> list[Curve]:
    """What `curves_csv` wrote.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is no curves.csv; the message names it.
    """
    found: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in study_rows(path, _COLUMNS, kind="curves.csv"):
        found.setdefault(tuple(row[name] for name in _COLUMNS[:4]), []).append(row)
    try:
        return [_curve(name, rows) for name, rows in found.items()]
    except ValueError as error:
        raise ValueError(f"{path}: {error}, expected numbers") from None


def _curve(name: tuple[str, ...], rows: Sequence[Mapping[str, str]]) -> Curve:
    task, protocol, objective, seed = name
    numbers = {column: tuple(float(row[column]) for row in rows) for column in _COLUMNS[5:]}
    return Curve(task, protocol, objective, seed, steps=tuple(int(row["step"]) for row in rows), **numbers)
