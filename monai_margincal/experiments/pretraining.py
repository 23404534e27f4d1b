"""The pre-training that fine-tuning starts from: its records, and what has to be said where it had not ended."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .results import Run
from .runner import load_record
from .standstill import still_rises
from .study import PRETRAINING, Study

__all__ = ["pretraining_histories", "pretraining_records", "pretraining_warnings"]


def pretraining_records(
    study: Study, output: str | os.PathLike[str], runs: Sequence[Run], task: str
) -> dict[str, dict[str, Any]]:
    """Seed, and fold if there are any, -> record of the pre-training, for the seeds that have a fine-tuned run."""
    seeds = sorted({run.cell.seed for run in runs if (run.cell.task, run.cell.protocol) == (task, "finetune")})
    found = {
        f"{seed}" if fold is None else f"{seed}, fold {fold}": load_record(
            output, study.cell(task, PRETRAINING, "", seed, fold=fold)
        )
        for seed in seeds
        for fold in study.folds(task)
    }
    return {seed: record for seed, record in found.items() if record is not None}


def pretraining_histories(
    study: Study, output: str | os.PathLike[str], runs: Sequence[Run], task: str
) -> dict[str, dict[str, Any]]:
    """Seed -> history of the pre-training."""
    return {seed: record["history"] for seed, record in pretraining_records(study, output, runs, task).items()}


def pretraining_warnings(study: Study, output: str | os.PathLike[str], runs: Sequence[Run]) -> list[str]:
    """One line per task whose comparison began before cross-entropy had ended: it then compares speeds as well."""
    lines = []
    for task in dict.fromkeys(run.cell.task for run in runs):
        histories = pretraining_histories(study, output, runs, task)
        by_rule = [seed for seed, history in histories.items() if history.get("still") is False]
        rising = [
            seed
            for seed, history in histories.items()
            if seed not in by_rule
            and history.get("still") is None
            and still_rises(history["steps"], history["validation_miou"])
        ]
        title = study.tasks[task].get("title", task)
        advice = "objectives are compared by how fast they learn as well; raise pretraining_steps"
        if by_rule:
            lines.append(
                f"Warning: {title}: the validation score did not stand still before the last step of pre-training "
                f"(seeds {'; '.join(by_rule)}): {advice}."
            )
        if rising:
            lines.append(
                f"Warning: {title}: at the end of pre-training the validation score still rose, or was near 0 "
                f"(seeds {'; '.join(rising)}): {advice}."
            )
    return lines
