"""Every finished run under every decoder, of a study at hand or of any results.csv, in the form that regret is computed from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .results import Run
from .study import Study
from .study_rows import study_rows

__all__ = ["ScoredRun", "read_scored_runs", "scored_runs"]

_COLUMNS = ("task", "protocol", "objective", "label", "group", "seed", "decoder", "miou", "cell")


@dataclass(frozen=True, eq=False)
class ScoredRun:
    """One run under one decoder.

    Attributes:
        task: name of the task.
        protocol: "finetune" or "scratch".
        objective: name of the objective, the same in every study.
        label: what tables and figures call it.
        is_baseline: the objective is one that others are compared with.
        seed: of the run.
        decoder: name of the decoder.
        miou: foreground mean IoU over the whole test set, a fraction of 1.
        confusion: confusion matrices of the test cases, int64 (N, C, C); None where only ``miou`` is known.
        fold_sizes: how many of the test cases are in each fold, in their order; empty without folds, or where it is not known.
    """

    task: str
    protocol: str
    objective: str
    label: str
    is_baseline: bool
    seed: int
    decoder: str
    miou: float
    confusion: np.ndarray | None
    fold_sizes: tuple[int, ...] = ()


def scored_runs(study: Study, runs: Iterable[Run]) -> list[ScoredRun]:
    """The finished runs of a study under each of its decoders."""
    return [
        ScoredRun(
            task=run.cell.task,
            protocol=run.cell.protocol,
            objective=run.cell.objective,
            label=study.label(run.cell.objective),
            is_baseline=study.objectives[run.cell.objective].get("group") == "baseline",
            seed=run.cell.seed,
            decoder=decoder,
            miou=run.miou(decoder),
            confusion=run.confusion(decoder),
            fold_sizes=tuple(run.record["evaluation"].get("fold_sizes", ())),
        )
        for run in runs
        for decoder in run.record["evaluation"]["confusion"]
    ]


def read_scored_runs(paths: Sequence[str | os.PathLike[str]]) -> list[ScoredRun]:
    """The runs of several results.csv together; they know no test cases.

    Raises:
        ValueError: a file is no results.csv with the columns ``label`` and ``group``, a number is none, or two files have the
            same run under the same decoder. The message names the file.
    """
    found: list[ScoredRun] = []
    seen: dict[tuple[str, str, str, int, str], str] = {}
    for path in map(Path, paths):
        for number, row in enumerate(_rows(path), start=2):
            try:
                seed, miou = int(row["seed"]), float(row["miou"])
            except ValueError as error:
                raise ValueError(f"{path}: line {number}: {error}, expected a seed and a score") from None
            run = ScoredRun(
                task=row["task"],
                protocol=row["protocol"],
                objective=row["objective"],
                label=row["label"],
                is_baseline=row["group"] == "baseline",
                seed=seed,
                decoder=row["decoder"],
                miou=miou,
                confusion=None,
            )
            key = (run.task, run.protocol, run.objective, run.seed, run.decoder)
            if key in seen:
                raise ValueError(
                    f"{path}: found {'/'.join(map(str, key))} again, which {seen[key]} has; expected every run once"
                )
            seen[key] = str(path)
            found.append(run)
    return found


def _rows(path: Path) -> list[dict[str, str]]:
    rows = study_rows(path, _COLUMNS, kind="results.csv")
    if not rows:
        raise ValueError(f"{path}: found no run, expected at least one")
    return rows
