"""The results of the finished cells: one row per run and decoder, one summary per objective."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..metrics import class_iou, class_precision, class_recall
from .pooled_folds import pooled_record
from .runner import load_record
from .scores import PAPER_ABSENT, Comparison, foreground_iou, foreground_mean, paired_comparison
from .study import Cell, Study

__all__ = ["Run", "Summary", "collect_runs", "results_csv", "summarise"]

#: number of the best baselines that are references
_REFERENCES = 4

#: a foreground class with a whole-set IoU below this was never learnt
FAILURE_IOU = 0.01


@dataclass(frozen=True, eq=False)
class Run:
    """A finished cell, or the finished cells of all folds of a task.

    Attributes:
        cell: which one; of several folds the first.
        record: what was stored, of several folds pooled.
        cells: all of them.
    """

    cell: Cell
    record: dict[str, Any]
    cells: tuple[Cell, ...]

    def confusion(self, decoder: str) -> np.ndarray:
        """Confusion matrices of the test cases, int64 (N, C, C)."""
        return np.asarray(self.record["evaluation"]["confusion"][decoder], dtype=np.int64)

    def miou(self, decoder: str) -> float:
        """Whole-set foreground mean IoU of the test cases."""
        return float(foreground_iou(self.confusion(decoder).sum(0)))

    def validation_miou(self, decoder: str) -> float:
        """The same over the validation cases."""
        return float(foreground_iou(np.asarray(self.record["evaluation"]["validation_confusion"][decoder])))

    def failed(self, decoder: str) -> bool:
        """The run diverged, or a foreground class was never learnt."""
        per_class = class_iou(self.confusion(decoder).sum(0), PAPER_ABSENT)[1:]
        return bool(self.record["history"]["diverged"]) or bool((per_class < FAILURE_IOU).any())


@dataclass(frozen=True)
class Summary:
    """All seeds of one objective in one task, under one decoder. Failed runs are counted and stay in the means.

    Attributes:
        task: name.
        protocol: "finetune" or "scratch".
        objective: name.
        decoder: name.
        seeds: the finished ones.
        miou: foreground mean IoU over the test set, one per seed.
        per_class_iou: (seeds, C).
        recall: foreground mean, one per seed.
        precision: foreground mean, one per seed.
        case_iou: mean over the test cases of their own foreground mean IoU, one per seed.
        validation_miou: one per seed.
        validation_loss: at the end of training, one per seed.
        failed: number of runs that diverged or never learnt a class.
        seconds: mean training time.
        peak_memory: the largest of all runs, in bytes.
        baseline: the objective it is compared with: the best of the group "baseline" (under the same decoder).
        comparison: with that baseline over the common seeds; None for the baseline itself.
        against: reference -> comparison with it over the common seeds; empty for all decoders but the first. References are
            the best baselines, the study's first baseline, and the first baseline under every other decoder, which costs no
            training.
    """

    task: str
    protocol: str
    objective: str
    decoder: str
    seeds: tuple[int, ...]
    miou: np.ndarray
    per_class_iou: np.ndarray
    recall: np.ndarray
    precision: np.ndarray
    case_iou: np.ndarray
    validation_miou: np.ndarray
    validation_loss: np.ndarray
    failed: int
    seconds: float
    peak_memory: int
    baseline: str | None
    comparison: Comparison | None
    against: dict[str, Comparison]


def collect_runs(study: Study, output: str | os.PathLike[str]) -> list[Run]:
    """The finished cells of a study, in its order; cells of older settings are ignored, and so are folds while one is missing."""
    together: dict[tuple[str, str, str, int], list[Cell]] = {}
    for cell in study.cells():
        together.setdefault((cell.task, cell.protocol, cell.objective, cell.seed), []).append(cell)
    runs = []
    for cells in together.values():
        found = [load_record(output, cell) for cell in cells]
        records = [record for record in found if record is not None]
        if len(records) == len(cells):
            runs.append(Run(cells[0], pooled_record(records), tuple(cells)))
    return runs


def results_csv(study: Study, runs: Iterable[Run]) -> str:
    """One line per run and decoder. Scores are fractions of 1, times are in seconds, memory is in MiB."""
    rows: list[dict[str, Any]] = []
    for run in runs:
        history = run.record["history"]
        for decoder in run.record["evaluation"]["confusion"]:
            matrices = run.confusion(decoder)
            total = matrices.sum(0)
            row: dict[str, Any] = {
                "task": run.cell.task,
                "protocol": run.cell.protocol,
                "objective": run.cell.objective,
                "label": study.label(run.cell.objective),
                "group": study.objectives[run.cell.objective].get("group", "other"),
                "seed": run.cell.seed,
                "decoder": decoder,
                "miou": run.miou(decoder),
                "case_iou": float(foreground_iou(matrices).mean()),
                "recall": float(foreground_mean(class_recall(total, PAPER_ABSENT))),
                "precision": float(foreground_mean(class_precision(total, PAPER_ABSENT))),
                "validation_miou": run.validation_miou(decoder),
                "failed": int(run.failed(decoder)),
                "diverged": int(history["diverged"]),
                "training_seconds": round(history["seconds"], 2),
                "peak_memory_mib": round(history["peak_memory"] / 2**20, 1),
                "cell": "+".join(cell.key for cell in run.cells),
            }
            scores = {"iou": class_iou, "recall": class_recall, "precision": class_precision}
            for score, of in scores.items():
                values = of(total, PAPER_ABSENT)
                for name, value in list(zip(run.record["class_names"], values, strict=True))[1:]:
                    row[f"{score}_{name}"] = float(value)
            rows.append({key: round(value, 6) if isinstance(value, float) else value for key, value in row.items()})
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def summarise(study: Study, runs: Sequence[Run]) -> list[Summary]:
    """One summary per task, protocol, decoder and objective, in the study's order.

    The baseline is the one with the best mean on the TEST cases, the hardest one to beat, of those with the most seeds: a mean
    over fewer seeds may be the best for the training cases that they drew.
    """
    groups: dict[tuple[str, str, str], dict[str, dict[int, Run]]] = {}
    for run in runs:
        for decoder in run.record["evaluation"]["confusion"]:
            group = groups.setdefault((run.cell.task, run.cell.protocol, decoder), {})
            group.setdefault(run.cell.objective, {})[run.cell.seed] = run
    first = next(iter(study.decoders))
    summaries = []
    for (task, protocol, decoder), objectives in groups.items():
        baselines = [name for name in objectives if study.objectives[name].get("group") == "baseline"]
        baselines.sort(key=lambda name: (-len(objectives[name]), -_mean_miou(objectives[name], decoder)))
        best = baselines[0] if baselines else None
        references: list[tuple[str, str]] = []
        if decoder == first and baselines:
            start = next(name for name in study.objectives if name in baselines)
            references = [(name, first) for name in dict.fromkeys([*baselines[:_REFERENCES], start])]
            references += [(start, other) for other in study.decoders if other != first]
        for name, by_seed in objectives.items():
            comparison = None
            if best is not None and name != best:
                comparison = _compare(by_seed, decoder, objectives[best], decoder)
            against = {}
            for reference, other in references:
                if (name, decoder) == (reference, other):
                    continue
                known = (reference, other) == (best, decoder)
                versus = comparison if known else _compare(by_seed, decoder, objectives[reference], other)
                if versus is not None:
                    against[study.label(reference) + ("" if other == first else f", {other}")] = versus
            summaries.append(
                _summary(
                    task,
                    protocol,
                    name,
                    decoder,
                    by_seed=by_seed,
                    baseline=best,
                    comparison=comparison,
                    against=against,
                )
            )
    return summaries


def on_common_seeds(summaries: Sequence[Summary]) -> list[Summary]:
    """The same summaries over their common seeds, since results shown side by side must come from the same training cases.

    The comparisons stay unchanged, as do ``failed``, ``seconds`` and ``peak_memory``.
    """
    common = set.intersection(*(set(summary.seeds) for summary in summaries)) if summaries else set()
    return [_restricted(summary, common) for summary in summaries if common]


def _restricted(summary: Summary, seeds: set[int]) -> Summary:
    kept = [place for place, seed in enumerate(summary.seeds) if seed in seeds]
    scores = ("miou", "per_class_iou", "recall", "precision", "case_iou", "validation_miou", "validation_loss")
    return replace(
        summary,
        seeds=tuple(summary.seeds[place] for place in kept),
        **{name: getattr(summary, name)[kept] for name in scores},
    )


def _compare(ours: dict[int, Run], our_decoder: str, theirs: dict[int, Run], their_decoder: str) -> Comparison | None:
    common = sorted(set(ours) & set(theirs))
    if not common:
        return None
    return paired_comparison(
        np.stack([ours[seed].confusion(our_decoder) for seed in common]),
        np.stack([theirs[seed].confusion(their_decoder) for seed in common]),
    )


def _mean_miou(by_seed: dict[int, Run], decoder: str) -> float:
    return float(np.mean([run.miou(decoder) for run in by_seed.values()]))


def _summary(
    task: str,
    protocol: str,
    objective: str,
    decoder: str,
    *,
    by_seed: dict[int, Run],
    baseline: str | None,
    comparison: Comparison | None,
    against: dict[str, Comparison],
) -> Summary:
    runs = [by_seed[seed] for seed in sorted(by_seed)]
    matrices = [run.confusion(decoder) for run in runs]
    totals = np.stack([matrix.sum(0) for matrix in matrices])
    histories = [run.record["history"] for run in runs]
    return Summary(
        task=task,
        protocol=protocol,
        objective=objective,
        decoder=decoder,
        seeds=tuple(sorted(by_seed)),
        miou=foreground_iou(totals),
        per_class_iou=class_iou(totals, PAPER_ABSENT),
        recall=foreground_mean(class_recall(totals, PAPER_ABSENT)),
        precision=foreground_mean(class_precision(totals, PAPER_ABSENT)),
        case_iou=np.array([foreground_iou(matrix).mean() for matrix in matrices]),
        validation_miou=np.array([run.validation_miou(decoder) for run in runs]),
        validation_loss=np.array([(history["validation_loss"] or [np.nan])[-1] for history in histories]),
        failed=sum(run.failed(decoder) for run in runs),
        seconds=float(np.mean([history["seconds"] for history in histories])),
        peak_memory=max(history["peak_memory"] for history in histories),
        baseline=baseline,
        comparison=comparison,
        against=against,
    )
