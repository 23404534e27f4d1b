"""Regret against a slow transcription, on results with and without cases."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monai_margincal.experiments.regret import regret_rows, task_regrets
from monai_margincal.experiments.scored_runs import ScoredRun
from monai_margincal.experiments.scores import foreground_iou


def _run(task, objective, decoder, seed, miou, confusion=None):
    group = objective.startswith("base")
    return ScoredRun(task, "finetune", objective, objective.upper(), group, seed, decoder, miou, confusion)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31 - 1), st.integers(2, 4), st.integers(1, 3))
def test_by_hand(seed, seeds, tasks):
    random = np.random.RandomState(seed)
    score = {
        (t, o, d, s): float(random.rand())
        for t in range(tasks)
        for o in ("base1", "base2", "ours")
        for d in ("argmax", "offsets")
        for s in range(seeds)
    }
    rows = regret_rows([_run(f"t{t}", o, d, s, value) for (t, o, d, s), value in score.items()])
    references = [(o, d) for o in ("base1", "base2") for d in ("argmax", "offsets")]

    def mean(t, pair, without=None):
        return np.mean([score[(t, *pair, s)] for s in range(seeds) if s != without])

    worst = []
    for row in rows:
        values = []
        for t in range(tasks):
            best = max(references, key=lambda pair, t=t: mean(t, pair))
            here = np.mean([score[(t, *best, s)] - score[(t, *row.pair, s)] for s in range(seeds)])
            elsewhere = []
            for s in range(seeds):
                other = max(references, key=lambda pair, t=t, s=s: mean(t, pair, s))
                elsewhere.append(score[(t, *other, s)] - score[(t, *row.pair, s)])
            found = row.tasks[f"t{t}"]
            assert found.chosen_here.value == pytest.approx(here)
            assert found.chosen_here.references == (best,) * seeds
            assert found.chosen_elsewhere.value == pytest.approx(np.mean(elsewhere))
            assert found.chosen_here.low <= found.chosen_here.value + 1e-12
            assert found.chosen_here.value <= found.chosen_here.high + 1e-12
            values.append(here)
        assert row.worst.chosen_here.value == pytest.approx(max(values))
        worst.append(max(values))
        if row.is_baseline:
            # nobody is behind itself, and no baseline is ahead of the best one
            assert min(values) >= -1e-12
    assert worst == sorted(worst)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31 - 1))
def test_a_reference_of_other_seeds_is_never_better_on_average(seed):
    random = np.random.RandomState(seed)
    runs = [
        _run("t", o, "argmax", s, float(random.rand())) for o in ("base1", "base2", "base3", "ours") for s in range(4)
    ]
    ours = next(row for row in regret_rows(runs) if row.pair[0] == "ours").tasks["t"]
    assert ours.chosen_elsewhere.value <= ours.chosen_here.value + 1e-12


def test_cases_give_the_interval_where_they_are_known():
    random = np.random.RandomState(0)
    runs = []
    for objective in ("base1", "ours"):
        for seed in (0, 1):
            matrices = random.randint(1, 50, (6, 2, 2))
            runs.append(_run("t", objective, "argmax", seed, float(foreground_iou(matrices.sum(0))), matrices))
    with_cases = {regret.pair: regret for regret in task_regrets(runs)}["ours", "argmax"].chosen_here
    plain = [_run(r.task, r.objective, r.decoder, r.seed, r.miou) for r in runs]
    without = {regret.pair: regret for regret in task_regrets(plain)}["ours", "argmax"].chosen_here
    assert with_cases.value == pytest.approx(without.value)
    assert (with_cases.low, with_cases.high) != (without.low, without.high)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31 - 1), st.integers(1, 3))
def test_the_cases_of_a_fold_are_compared_with_the_best_pair_of_the_other_folds(seed, seeds):
    random = np.random.RandomState(seed)
    sizes = (2, 3, 1)
    fold_of = np.repeat([0, 1, 2], sizes)
    matrices = {
        (o, d, s): random.randint(1, 50, (6, 3, 3))
        for o in ("base1", "base2", "ours")
        for d in ("argmax", "offsets")
        for s in range(seeds)
    }
    runs = [
        replace(_run("t", o, d, s, float(foreground_iou(found.sum(0))), found), fold_sizes=sizes)
        for (o, d, s), found in matrices.items()
    ]
    ours = {regret.pair: regret for regret in task_regrets(runs)}["ours", "argmax"].chosen_elsewhere
    references = [(o, d) for o in ("base1", "base2") for d in ("argmax", "offsets")]
    chosen = []
    for fold in range(3):

        def elsewhere(pair, fold=fold):
            return np.mean([foreground_iou(matrices[(*pair, s)][fold_of != fold].sum(0)) for s in range(seeds)])

        chosen.append(max(references, key=elsewhere))
    assert ours.references == tuple(chosen)
    differences = []
    for s in range(seeds):
        total = sum(matrices[(*chosen[fold_of[case]], s)][case] for case in range(6))
        differences.append(foreground_iou(total) - foreground_iou(matrices["ours", "argmax", s].sum(0)))
    assert ours.value == pytest.approx(np.mean(differences))
    assert ours.low <= ours.high


def test_one_seed_has_no_other_seeds_and_no_interval():
    runs = [_run("t", "base1", "argmax", 3, 0.5), _run("t", "ours", "argmax", 3, 0.6)]
    (base, ours) = task_regrets(runs)
    assert ours.chosen_here.value == pytest.approx(-0.1)
    assert math.isnan(ours.chosen_here.low)
    assert ours.chosen_elsewhere is None
    assert base.chosen_here.value == 0
    assert regret_rows(runs)[0].worst_elsewhere is None


def test_a_baseline_with_fewer_seeds_is_no_reference():
    runs = [_run("t", "base1", "argmax", s, 0.5) for s in (0, 1)]
    runs += [_run("t", "base2", "argmax", 0, 0.9)]
    runs += [_run("t", "ours", "argmax", s, 0.4) for s in (1, 2)]
    regrets = {regret.pair[0]: regret for regret in task_regrets(runs)}
    assert regrets["ours"].chosen_here.references == (("base1", "argmax"),)
    assert regrets["ours"].seeds == (1,)


def test_recipes_of_all_tasks_come_first():
    runs = [_run(t, "base1", "argmax", 0, 0.5) for t in "ab"] + [_run(t, "bad", "argmax", 0, 0.1) for t in "ab"]
    runs.append(_run("a", "good", "argmax", 0, 0.9))
    assert [row.pair[0] for row in regret_rows(runs)] == ["base1", "bad", "good"]


def test_without_a_baseline_there_is_nothing_to_compare_with():
    assert task_regrets([_run("t", "ours", "argmax", 0, 0.5)]) == []
    assert regret_rows([_run("t", "ours", "argmax", 0, 0.5)]) == []
