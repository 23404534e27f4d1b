"""Tables of a study: the comparison itself, and the paper's Tables 1, 2, 3 and 5 with its numbers next to ours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import published
from .results import Summary, on_common_seeds
from .scores import Comparison, signed_points
from .study import Study
from .table_form import Table

__all__ = ["PROTOCOL_NAMES", "study_tables"]

PROTOCOL_NAMES = {"finetune": "fine-tuned after cross-entropy", "scratch": "from scratch"}


def study_tables(study: Study, summaries: Sequence[Summary]) -> list[Table]:
    """All tables that the finished cells give."""
    first = next(iter(study.decoders))
    plain = [summary for summary in summaries if summary.decoder == first]
    tables = []
    for task, protocol in dict.fromkeys((summary.task, summary.protocol) for summary in plain):
        chosen = [summary for summary in plain if (summary.task, summary.protocol) == (task, protocol)]
        where = f"{study.tasks[task].get('title', task)}, {PROTOCOL_NAMES[protocol]}"
        tables.append(_comparison(study, chosen, where))
        tables.append(_references(study, chosen, where))
        tables.append(_decoders(study, [s for s in summaries if (s.task, s.protocol) == (task, protocol)], where))
        tables.append(_per_class(study, chosen, where, task))
        tables.append(_sensitivity(study, chosen, where))
    tables.append(_single(study, plain))
    tables.append(_compound(study, plain))
    return [table for table in tables if table.rows]


def _comparison(study: Study, summaries: Sequence[Summary], where: str) -> Table:
    rows = []
    ordered = sorted(summaries, key=_rank)
    for summary in ordered:
        versus = summary.comparison
        rows.append(
            (
                study.label(summary.objective),
                str(len(summary.seeds)),
                _spread(summary.miou),
                "(reference)" if versus is None else _interval(versus),
                "" if versus is None else f"{versus.wins}/{versus.ties}/{versus.losses}",
                "" if versus is None else f"{100 * versus.case_wins:.0f}",
                _percent(summary.recall),
                _percent(summary.precision),
                _percent(summary.case_iou),
                f"{summary.failed} of {len(summary.seeds)}",
                f"{summary.seconds:.0f}",
                f"{summary.peak_memory / 2**20:.0f}",
            )
        )
    alone = sum(len(summary.seeds) == 1 for summary in summaries)
    warning = (
        f" {alone} objective(s) have one seed only: their intervals are over cases and know nothing of training noise."
        if alone
        else ""
    )
    reference = next((study.label(summary.baseline) for summary in summaries if summary.baseline), "none")
    return Table(
        f"Comparison: {where}",
        (
            "objective",
            "seeds",
            "mIoU ± sd",
            "Δ to best baseline [95 %]",
            "win/tie/loss",
            "cases won %",
            "recall",
            "precision",
            "case mIoU",
            "failed",
            "s",
            "MiB",
        ),
        tuple(rows),
        f"Foreground means over the whole test set, percent; sd over seeds. Best baseline: {reference}. Interval: bootstrap over "
        "seeds and cases. Ties: up to 0.1. Failed: diverged, or a class never learnt." + warning,
        highest=("mIoU ± sd", "Δ to best baseline [95 %]", "cases won %", "recall", "precision", "case mIoU"),
        lowest=("s", "MiB"),
        breaks=_breaks(ordered),
    )


def _rank(summary: Summary) -> tuple[int, float]:
    """Best paired difference first; means over fewer seeds come from other training sets and follow at the end."""
    return -len(summary.seeds), -(summary.comparison.difference if summary.comparison else 0.0)


def _breaks(ordered: Sequence[Summary]) -> tuple[tuple[int, str], ...]:
    """Where the number of seeds changes."""
    seeds = [len(summary.seeds) for summary in ordered]
    return tuple(
        (row, "one seed only" if count == 1 else f"{count} seeds only")
        for row, count in enumerate(seeds)
        if row and count != seeds[row - 1]
    )


def _interval(versus: Comparison) -> str:
    return f"{signed_points(versus.difference)} [{signed_points(versus.low)}, {signed_points(versus.high)}]"


def _references(study: Study, summaries: Sequence[Summary], where: str) -> Table:
    names = list(dict.fromkeys(name for summary in summaries for name in summary.against))
    ordered = sorted(summaries, key=_rank)
    rows = tuple(
        (
            study.label(summary.objective),
            *(_interval(summary.against[name]) if name in summary.against else "–" for name in names),
        )
        for summary in ordered
    )
    return Table(
        f"Against each reference: {where}",
        ("objective", *names),
        rows if names else (),
        "Paired difference of the foreground mIoU, points [95 % interval over seeds and cases], over the seeds that both have. "
        "References: the best baselines, the first baseline, and that one under the other decoders, which cost no training.",
        highest=tuple(names),
        breaks=_breaks(ordered) if names else (),
    )


def _decoders(study: Study, summaries: Sequence[Summary], where: str) -> Table:
    by_objective: dict[str, dict[str, Summary]] = {}
    for summary in summaries:
        by_objective.setdefault(summary.objective, {})[summary.decoder] = summary
    names = list(study.decoders)
    rows = []
    for objective, found in sorted(by_objective.items(), key=lambda entry: -len(entry[1][names[0]].seeds)):
        base = found[names[0]].miou
        row = [study.label(objective), _percent(base)]
        row += [
            f"{_percent(found[name].miou)} ({signed_points(float((found[name].miou - base).mean()))})"
            for name in names[1:]
        ]
        rows.append(tuple(row))
    return Table(
        f"Decoders: {where}",
        ("objective", *names),
        tuple(rows) if len(names) > 1 else (),
        "Foreground mIoU, percent (difference to the first decoder). Decoders are fitted on the validation cases.",
        highest=tuple(names),
        breaks=_breaks(sorted((found[names[0]] for found in by_objective.values()), key=lambda one: -len(one.seeds)))
        if len(names) > 1
        else (),
    )


def _per_class(study: Study, summaries: Sequence[Summary], where: str, task: str) -> Table:
    names = tuple(study.tasks[task]["class_names"][1:])
    ordered = sorted(summaries, key=lambda summary: -len(summary.seeds))
    rows = tuple(
        (study.label(summary.objective), *(_spread(summary.per_class_iou[:, k + 1]) for k in range(len(names))))
        for summary in ordered
    )
    title = f"IoU per class: {where}"
    return Table(title, ("method", *names), rows, "Percent ± sd over seeds.", highest=names, breaks=_breaks(ordered))


def _sensitivity(study: Study, summaries: Sequence[Summary], where: str) -> Table:
    """The paper's Table 1."""
    rows = []
    repeats = _repeats_the_paper(study)
    columns = ("paper: COVID loss", "COVID IoU", "instruments loss", "instruments mIoU") if repeats else ()
    chosen = on_common_seeds([s for s in summaries if study.objectives[s.objective].get("tau_upsilon")])
    for summary in sorted(chosen, key=lambda one: study.objectives[one.objective]["tau_upsilon"]):
        tau, upsilon = study.objectives[summary.objective]["tau_upsilon"]
        paper = published.SENSITIVITY.get((tau, upsilon))
        theirs = ["–"] * len(columns)
        if paper is not None and columns:
            theirs = [text for loss, score in paper for text in (f"{loss:.3f}", f"{score:.1f}")]
        rows.append(
            (
                f"{study.label(summary.objective)}: τ={tau:g}, υ={upsilon:g}",
                f"{summary.validation_loss.mean():.3f}",
                _spread(summary.validation_miou),
                _spread(summary.miou),
                *theirs,
            )
        )
    return Table(
        f"Sensitivity: {where}" + (" (the paper's Table 1)" if repeats else ""),
        ("setting", "validation loss", "validation mIoU", "test mIoU", *columns),
        tuple(rows),
        "Over the seeds that all settings have"
        + (f": {', '.join(map(str, chosen[0].seeds))}. " if chosen else ". ")
        + "Losses of different margins are not comparable with each other.",
    )


def _single(study: Study, summaries: Sequence[Summary]) -> Table:
    """Tables 2 and 3."""
    return _beside_the_paper(
        study,
        summaries,
        "Single objectives (the paper's Tables 2 and 3)",
        paper={name: tuple(value for pair in pairs for value in pair) for name, pairs in published.METHODS.items()},
        columns=tuple(
            f"paper: {data} {score}"
            for data in ("COVID 1", "COVID 2", "instruments binary", "instruments parts")
            for score in ("acc.", "IoU")
        ),
    )


def _compound(study: Study, summaries: Sequence[Summary]) -> Table:
    """Table 5."""
    return _beside_the_paper(
        study,
        summaries,
        "Compound objectives (the paper's Table 5)",
        paper=published.COMPOUND,
        columns=("paper: COVID 1", "paper: COVID 2", "paper: instruments binary", "paper: instruments parts"),
    )


def _beside_the_paper(
    study: Study,
    summaries: Sequence[Summary],
    title: str,
    paper: dict[str, tuple[float, ...]],
    columns: tuple[str, ...],
) -> Table:
    places = list(dict.fromkeys((summary.task, summary.protocol) for summary in summaries))
    found = {(s.task, s.protocol, s.objective): s for s in summaries}
    header = ["method"]
    for task, protocol in places:
        where = task if protocol == "finetune" else f"{task}, {protocol}"
        header += [f"{where} acc.", f"{where} mIoU"]
    rows = []
    for objective in study.objectives:
        row_name = _paper_row(study, objective)
        if row_name not in paper or not any((*place, objective) in found for place in places):
            continue
        row = [f"{row_name} ({study.label(objective)})"]
        for place in places:
            summary = found.get((*place, objective))
            row += ["–", "–"] if summary is None else [_percent(summary.recall), _spread(summary.miou)]
        rows.append((*row, *(f"{value:.1f}" for value in paper[row_name])))
    return Table(
        title,
        (*header, *columns),
        tuple(rows),
        "Acc.: recall of the foreground. Percent ± sd over seeds; the paper: one run.",
    )


def _repeats_the_paper(study: Study) -> bool:
    """An objective names a row of the paper's tables: in other studies they are nobody's business."""
    return any(entry.get("paper") for entry in study.objectives.values())


def _paper_row(study: Study, objective: str) -> str | None:
    return study.objectives[objective].get("paper")


def _percent(values: np.ndarray) -> str:
    return f"{100 * float(np.mean(values)):.2f}"


def _spread(values: np.ndarray) -> str:
    """Mean ± standard deviation; one seed has none."""
    text = _percent(values)
    return f"{text} ± {100 * float(np.std(values, ddof=1)):.2f}" if len(values) > 1 else text
