"""The figures that the finished cells of a study give, with their captions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .curves import Curve
from .figures import (
    class_figure,
    convergence_figure,
    decoder_figure,
    difference_figure,
    margin_figure,
    overview_figure,
    panel_figure,
    pretraining_figure,
    sensitivity_figure,
    surrogate_figure,
)
from .pretraining import pretraining_records
from .results import Run, Summary
from .runner import record_path
from .study import PRETRAINING, Study
from .study_curves import study_curves
from .tables import PROTOCOL_NAMES

__all__ = ["curve_figures", "foreground_shares", "result_figures", "study_figures"]

#: convergence, margins and pictures stay readable with this many objectives
_SHOWN = 5


def study_figures(
    study: Study, folder: Path, runs: Sequence[Run], summaries: Sequence[Summary]
) -> dict[str, tuple[str, Any]]:
    """Draw all figures that have something to show.

    Args:
        study: what was compared.
        folder: folder of the cells.
        runs: the finished cells.
        summaries: summaries of the runs.

    Returns:
        file name without ending -> (caption, matplotlib figure).
    """
    figures = result_figures(study, summaries, foreground_shares(runs))
    figures |= curve_figures(study, summaries, study_curves(study, folder, runs))
    first = next(iter(study.decoders))
    for task, protocol in dict.fromkeys((summary.task, summary.protocol) for summary in summaries):
        plain = [s for s in summaries if (s.task, s.protocol, s.decoder) == (task, protocol, first)]
        names = list(study.tasks[task]["class_names"])
        where = _where(study, task, protocol)
        shown = _leaders(study, plain)
        made: dict[str, tuple[str, Any]] = {}
        if protocol == "finetune":
            made["margins"] = (
                f"Margins of the test voxels before and after fine-tuning: {where}.",
                margin_figure(_histograms(study, folder, runs, task=task, objectives=shown), names),
            )
        made["panels"] = (
            f"Test slices: {where}.",
            panel_figure(_pictures(study, folder, runs, task=task, protocol=protocol, objectives=shown), names),
        )
        figures |= _drawn(f"{task}_{protocol}", made)
    return figures


def result_figures(
    study: Study, summaries: Sequence[Summary], foreground: Mapping[str, float] | None = None
) -> dict[str, tuple[str, Any]]:
    """Those that need nothing but summaries, from cells or as `read_summaries` gives them.

    Args:
        study: what was compared.
        summaries: of its runs, those of the first decoder before those of the others.
        foreground: see `overview_figure`.

    Returns:
        as `study_figures`.
    """
    first = summaries[0].decoder
    figures: dict[str, tuple[str, Any]] = {
        "loss_functions": (
            "The two losses of a margin: the one in the bound, and the one that is trained.",
            surrogate_figure(),
        )
    }
    for protocol in dict.fromkeys(summary.protocol for summary in summaries):
        here = [s for s in summaries if (s.protocol, s.decoder) == (protocol, first)]
        made = {"overview": (f"Every objective in every task: {protocol}.", overview_figure(study, here, foreground))}
        figures |= _drawn(protocol, made)
    for task, protocol in dict.fromkeys((summary.task, summary.protocol) for summary in summaries):
        here = [s for s in summaries if (s.task, s.protocol) == (task, protocol)]
        plain = [s for s in here if s.decoder == first]
        names = list(study.tasks[task]["class_names"])
        where = _where(study, task, protocol)
        made = {
            "differences": (f"Paired differences to the best baseline: {where}.", difference_figure(study, plain)),
            "classes": (f"IoU per class, ± one standard deviation: {where}.", class_figure(study, plain, names)),
            "decoders": (f"What a free decoder gains: {where}.", decoder_figure(study, here)),
            "sensitivity": (f"Sensitivity to tau and upsilon: {where}.", sensitivity_figure(study, plain)),
        }
        figures |= _drawn(f"{task}_{protocol}", made)
    return figures


def curve_figures(study: Study, summaries: Sequence[Summary], curves: Sequence[Curve]) -> dict[str, tuple[str, Any]]:
    """Those of the validation curves, from cells or as `read_curves` gives them.

    Args:
        study: what was compared.
        summaries: of its runs; they say which objectives are worth a curve.
        curves: of the pre-training and of the fine-tuning.

    Returns:
        as `study_figures`.
    """
    figures: dict[str, tuple[str, Any]] = {}
    for task in dict.fromkeys(curve.task for curve in curves):
        here = [curve for curve in curves if curve.task == task]
        plain = [s for s in summaries if (s.task, s.protocol, s.decoder) == (task, "finetune", summaries[0].decoder)]
        known = {curve.objective for curve in here if curve.protocol == "finetune"}
        shown = _leaders(study, [summary for summary in plain if summary.objective in known])
        by_label = {
            study.label(name): [c for c in here if (c.protocol, c.objective) == ("finetune", name)] for name in shown
        }
        where = _where(study, task, "finetune")
        before = [curve for curve in here if curve.protocol == PRETRAINING]
        made = {
            "pretraining": (f"Cross-entropy before the comparison: {where}.", pretraining_figure(before)),
            "convergence": (f"Convergence: {where}.", convergence_figure(by_label)),
        }
        figures |= _drawn(f"{task}_finetune", made)
    return figures


def foreground_shares(runs: Sequence[Run]) -> dict[str, float]:
    """Task -> share of the foreground in the training voxels, mean over the runs."""
    shares: dict[str, list[float]] = {}
    for run in runs:
        counts = np.asarray(run.record["training_counts"], float)
        shares.setdefault(run.cell.task, []).append(float(counts[1:].sum() / counts.sum()))
    return {task: float(np.mean(found)) for task, found in shares.items()}


def _drawn(stem: str, made: Mapping[str, tuple[str, Any]]) -> dict[str, tuple[str, Any]]:
    return {f"{stem}_{name}": entry for name, entry in made.items() if entry[1] is not None}


def _where(study: Study, task: str, protocol: str) -> str:
    return f"{study.tasks[task].get('title', task)}, {PROTOCOL_NAMES[protocol]}"


def _leaders(study: Study, summaries: Sequence[Summary]) -> list[str]:
    """Cross-entropy or the first baseline, the best baseline, the best of every other group."""
    if not summaries:
        return []
    by_group: dict[str, list[Summary]] = {}
    most = max(len(summary.seeds) for summary in summaries)
    for summary in summaries:
        if len(summary.seeds) < most:
            continue  # its mean is over different training sets
        by_group.setdefault(str(study.objectives[summary.objective].get("group", "other")), []).append(summary)
    chosen = [summary.objective for summary in by_group.get("baseline", [])[:1]]
    for group in by_group.values():
        chosen.append(max(group, key=lambda summary: summary.miou.mean()).objective)
    chosen += [s.objective for s in summaries if study.objectives[s.objective].get("paper") == "Ours"]
    return list(dict.fromkeys(chosen))[:_SHOWN]


def _histograms(
    study: Study, folder: Path, runs: Sequence[Run], task: str, objectives: Sequence[str]
) -> dict[str, Any]:
    """Sums over the seeds, pre-training first."""
    found: dict[str, Any] = {}
    before = pretraining_records(study, folder, runs, task)
    sums = [np.asarray(record["evaluation"]["margin_histogram"]) for record in before.values()]
    if sums:
        found["before"] = np.sum(sums, axis=0)
    for objective in objectives:
        sums = [
            np.asarray(run.record["evaluation"]["margin_histogram"])
            for run in runs
            if (run.cell.task, run.cell.protocol, run.cell.objective) == (task, "finetune", objective)
        ]
        if sums:
            found[study.label(objective)] = np.sum(sums, axis=0)
    return found


def _pictures(
    study: Study, folder: Path, runs: Sequence[Run], task: str, protocol: str, objectives: Sequence[str]
) -> dict[str, dict[str, np.ndarray]]:
    """Pictures of the first seed that all shown objectives have."""
    by_objective = {
        objective: {
            run.cell.seed: run
            for run in runs
            if (run.cell.task, run.cell.protocol, run.cell.objective) == (task, protocol, objective)
        }
        for objective in objectives
    }
    common = set.intersection(*(set(by_seed) for by_seed in by_objective.values())) if by_objective else set()
    if not common:
        return {}
    seed = min(common)
    found = {}
    for objective, by_seed in by_objective.items():
        with np.load(record_path(folder, by_seed[seed].cell).with_suffix(".npz"), allow_pickle=False) as arrays:
            found[study.label(objective)] = {name: arrays[name] for name in arrays.files}
    return found
