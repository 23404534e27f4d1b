"""The summaries of a study from its results.csv and comparisons.csv, without its cells: what most figures are drawn from."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .comparisons import read_comparisons
from .results import Summary
from .study import Study
from .study_rows import study_rows

__all__ = ["read_summaries"]

_NAMES = ("task", "protocol", "decoder", "objective", "seed")
_SCORES = ("miou", "recall", "precision", "case_iou", "validation_miou")
_COLUMNS = (*_NAMES, *_SCORES, "failed", "training_seconds", "peak_memory_mib")


def read_summaries(study: Study, folder: str | os.PathLike[str]) -> list[Summary]:
    """What `summarise` gave when the files were written; numbers that are in neither file are NaN: the validation loss, and
    the IoU of the background.

    Args:
        study: the settings; its data are not read.
        folder: of results.csv and comparisons.csv.

    Returns:
        one per task, protocol, decoder and objective, in the order of the file.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged, or names a task or an objective that the study does not have.
    """
    path = Path(folder) / "results.csv"
    per_class = dict.fromkeys(f"iou_{name}" for task in study.tasks.values() for name in task["class_names"][1:])
    rows = study_rows(path, (*_COLUMNS, *per_class), kind="results.csv")
    comparisons = read_comparisons(Path(folder) / "comparisons.csv")
    by_task: dict[tuple[str, str, str], dict[str, list[dict[str, str]]]] = {}
    for row in rows:
        if row["task"] not in study.tasks or row["objective"] not in study.objectives:
            raise ValueError(
                f"{path}: found the task {row['task']!r} and the objective {row['objective']!r}, expected those of the study"
            )
        group = by_task.setdefault((row["task"], row["protocol"], row["decoder"]), {})
        group.setdefault(row["objective"], []).append(row)
    summaries = []
    for (task, protocol, decoder), objectives in by_task.items():
        baselines = [name for name in objectives if study.objectives[name].get("group") == "baseline"]
        best = max(baselines, key=lambda name: _numbers(objectives[name], "miou").mean(), default=None)
        for name, runs in objectives.items():
            runs.sort(key=lambda row: int(row["seed"]))
            against = dict(comparisons.get((task, protocol, name, decoder), {}))
            classes = study.tasks[task]["class_names"][1:]
            foreground = [_numbers(runs, f"iou_{one}") for one in classes]
            summaries.append(
                Summary(
                    task=task,
                    protocol=protocol,
                    objective=name,
                    decoder=decoder,
                    seeds=tuple(int(row["seed"]) for row in runs),
                    miou=_numbers(runs, "miou"),
                    per_class_iou=np.stack([np.full(len(runs), np.nan), *foreground], axis=1),
                    recall=_numbers(runs, "recall"),
                    precision=_numbers(runs, "precision"),
                    case_iou=_numbers(runs, "case_iou"),
                    validation_miou=_numbers(runs, "validation_miou"),
                    validation_loss=np.full(len(runs), np.nan),
                    failed=sum(int(row["failed"]) for row in runs),
                    seconds=float(_numbers(runs, "training_seconds").mean()),
                    peak_memory=round(2**20 * float(_numbers(runs, "peak_memory_mib").max())),
                    baseline=best,
                    comparison=against.pop("", None),
                    against=against,
                )
            )
    return summaries


def _numbers(rows: Sequence[dict[str, str]], column: str) -> np.ndarray:
    return np.array([float(row[column]) for row in rows])
