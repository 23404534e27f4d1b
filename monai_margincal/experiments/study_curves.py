"""The validation curves of a study's finished cells."""

from __future__ import annotations

import os
from collections.abc import Sequence

from .curves import Curve, history_curve
from .pretraining import pretraining_histories
from .results import Run
from .study import PRETRAINING, Study

__all__ = ["study_curves"]


def study_curves(study: Study, output: str | os.PathLike[str], runs: Sequence[Run]) -> list[Curve]:
    """Those of the pre-training of every task, then those of the runs.

    A run that diverged has none. The runs of several folds are averaged, the pre-trainings are not.

    Args:
        study: what was compared.
        output: folder of the cells.
        runs: the finished cells.
    """
    curves = []
    for task in dict.fromkeys(run.cell.task for run in runs):
        for seed, history in pretraining_histories(study, output, runs, task).items():
            curves.append(history_curve(task, PRETRAINING, "", seed, history=history))
    for run in runs:
        history = run.record["history"]
        if not history["diverged"]:
            cell = run.cell
            curves.append(history_curve(cell.task, cell.protocol, cell.objective, str(cell.seed), history=history))
    return curves
