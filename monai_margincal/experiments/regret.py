"""How far every recipe is from the best baseline of a task, and in which task it is farthest: the price of always taking it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .regret_references import Pair, Reference, best_here, best_of_other_folds, best_of_other_seeds
from .scored_runs import ScoredRun
from .scores import paired_comparison, seed_interval

__all__ = ["Pair", "Regret", "RegretRow", "TaskRegret", "regret_rows", "task_regrets"]


@dataclass(frozen=True)
class Regret:
    """What a recipe lacks to a reference, over the seeds that both have: the smaller, the better; below 0 it is ahead.

    Attributes:
        value: mean over the seeds, fractions of 1.
        low: lower end of the 95 % interval; NaN where one seed without cases allows none.
        high: upper end.
        references: the reference of every seed, or of every fold.
    """

    value: float
    low: float
    high: float
    references: tuple[Pair, ...]


@dataclass(frozen=True)
class TaskRegret:
    """The regret of one recipe in one task.

    Attributes:
        task: name.
        pair: objective and decoder.
        label: what tables and figures call the pair.
        is_baseline: the pair could be the reference.
        seeds: those that were compared.
        chosen_here: against the baseline pair that has the best mean on these test cases, over all seeds. It was chosen by the
            numbers that it is compared by, so it is a little too good, the more so the more baselines there are.
        chosen_elsewhere: the cases of every fold against the baseline pair that is best on those of the *other* folds, or, where
            there are none or their cases are not known, every seed against the pair that has the best mean over the *other*
            seeds: what somebody could have known beforehand. None for one seed without folds.
    """

    task: str
    pair: Pair
    label: str
    is_baseline: bool
    seeds: tuple[int, ...]
    chosen_here: Regret
    chosen_elsewhere: Regret | None


@dataclass(frozen=True)
class RegretRow:
    """One recipe in all tasks.

    Attributes:
        pair: objective and decoder.
        label: what tables and figures call it.
        is_baseline: it could be the reference.
        tasks: task -> regret, of the tasks in which it was run.
        worst: the task in which ``chosen_here`` is largest.
        worst_elsewhere: the same of ``chosen_elsewhere``; None where a task has none.
    """

    pair: Pair
    label: str
    is_baseline: bool
    tasks: Mapping[str, TaskRegret]
    worst: TaskRegret
    worst_elsewhere: TaskRegret | None


def task_regrets(runs: Sequence[ScoredRun]) -> list[TaskRegret]:
    """The regret of every (objective, decoder) pair in one task.

    The interval is a bootstrap over seeds and test cases where the confusion matrices of all runs are known, else over seeds.
    A baseline that lacks a seed which another one has is no reference: its mean is over other training cases.

    Args:
        runs: those of one task and protocol.

    Returns:
        one per pair, in the order of the runs; empty where no baseline was run.
    """
    by_pair: dict[Pair, dict[int, ScoredRun]] = {}
    for run in runs:
        by_pair.setdefault((run.objective, run.decoder), {})[run.seed] = run
    baselines = {pair: seeds for pair, seeds in by_pair.items() if next(iter(seeds.values())).is_baseline}
    most = max(map(len, baselines.values()), default=0)
    seeds = sorted(next((found for found in baselines.values() if len(found) == most), {}))
    whole = {
        pair: {seed: found[seed] for seed in seeds} for pair, found in baselines.items() if set(found) == set(seeds)
    }
    if not whole:
        return []
    here = best_here(whole)
    elsewhere = best_of_other_folds(whole) or best_of_other_seeds(whole)
    with_cases = all(run.confusion is not None for run in runs)
    found_regrets = []
    for pair, found in by_pair.items():
        ours = {seed: found[seed] for seed in seeds if seed in found}
        if not ours:
            continue
        first = next(iter(ours.values()))
        found_regrets.append(
            TaskRegret(
                task=first.task,
                pair=pair,
                label=f"{first.label}, {pair[1]}",
                is_baseline=pair in baselines,
                seeds=tuple(ours),
                chosen_here=_regret(here, ours, with_cases),
                chosen_elsewhere=None if elsewhere is None else _regret(elsewhere, ours, with_cases),
            )
        )
    return found_regrets


def _regret(reference: Reference, ours: Mapping[int, ScoredRun], with_cases: bool) -> Regret:
    theirs = [reference.runs[seed] for seed in ours]
    by_seed = reference.pairs.keys() == reference.runs.keys()
    pairs = tuple(pair for key, pair in reference.pairs.items() if key in ours or not by_seed)
    if with_cases:
        versus = paired_comparison(
            np.stack([np.asarray(run.confusion) for run in theirs]),
            np.stack([np.asarray(run.confusion) for run in ours.values()]),
        )
        return Regret(versus.difference, versus.low, versus.high, pairs)
    differences = np.array([run.miou for run in theirs]) - np.array([run.miou for run in ours.values()])
    low, high = seed_interval(differences)
    return Regret(float(differences.mean()), low, high, pairs)


def regret_rows(runs: Sequence[ScoredRun]) -> list[RegretRow]:
    """Every recipe in all tasks: those that were run in most tasks first, of these the one with the smallest worst case first.

    Args:
        runs: those of one protocol, of any number of tasks.

    Example:
        >>> def run(task, objective, seed, miou):
        ...     return ScoredRun(task, "finetune", objective, objective, objective != "ours", seed, "argmax", miou, None)
        >>> runs = [run("a", "ce", 0, 0.7), run("a", "dice", 0, 0.6), run("a", "ours", 0, 0.69)]
        >>> runs += [run("b", "ce", 0, 0.1), run("b", "dice", 0, 0.4), run("b", "ours", 0, 0.38)]
        >>> [(row.label, round(row.worst.chosen_here.value, 2), row.worst.task) for row in regret_rows(runs)]
        [('ours, argmax', 0.02, 'b'), ('dice, argmax', 0.1, 'a'), ('ce, argmax', 0.3, 'b')]
    """
    by_task: dict[str, list[ScoredRun]] = {}
    for run in runs:
        by_task.setdefault(run.task, []).append(run)
    by_pair: dict[Pair, dict[str, TaskRegret]] = {}
    for task, chosen in by_task.items():
        for regret in task_regrets(chosen):
            by_pair.setdefault(regret.pair, {})[task] = regret
    rows = [_row(pair, tasks) for pair, tasks in by_pair.items()]
    return sorted(rows, key=lambda row: (-len(row.tasks), row.worst.chosen_here.value))


def _row(pair: Pair, tasks: Mapping[str, TaskRegret]) -> RegretRow:
    known = [regret for regret in tasks.values() if regret.chosen_elsewhere is not None]
    first = next(iter(tasks.values()))
    return RegretRow(
        pair=pair,
        label=first.label,
        is_baseline=first.is_baseline,
        tasks=tasks,
        worst=max(tasks.values(), key=lambda regret: regret.chosen_here.value),
        worst_elsewhere=max(known, key=_elsewhere) if len(known) == len(tasks) else None,
    )


def _elsewhere(regret: TaskRegret) -> float:
    return -np.inf if regret.chosen_elsewhere is None else regret.chosen_elsewhere.value
