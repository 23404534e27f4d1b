"""What a report says first: the numbers by hand, and no winner where there is none."""

from __future__ import annotations

import numpy as np

from monai_margincal.experiments.best_pair import best_pair_says
from monai_margincal.experiments.scored_runs import ScoredRun


def _run(
    objective: str, seed: int, miou: float, decoder: str = "argmax", matrices: np.ndarray | None = None
) -> ScoredRun:
    return ScoredRun("t", "finetune", objective, objective, objective != "ours", seed, decoder, miou, matrices)


def _runs(**scores: list[float]) -> list[ScoredRun]:
    return [_run(name, seed, miou) for name, found in scores.items() for seed, miou in enumerate(found)]


def test_a_clear_winner_with_its_lead_and_the_best_baseline() -> None:
    runs = _runs(ce=[0.5, 0.6, 0.5, 0.6, 0.5], ours=[0.6, 0.7, 0.6, 0.7, 0.6])
    runs += [_run("ours", seed, run.miou - 0.01, "offsets") for seed, run in enumerate(runs[5:])]
    assert best_pair_says(runs) == (
        "Ours with argmax is best: a foreground mIoU of 64.00 %, +1.00 [+1.00, +1.00] points ahead of the next, ours with "
        "offsets. Against the best pair of the baselines, ce with argmax: +10.00 [+10.00, +10.00]. Intervals: 95 %, over seeds."
    )


def test_an_interval_with_zero_is_undecided() -> None:
    said = best_pair_says(_runs(ce=[0.5, 0.6, 0.5, 0.6, 0.5], dice=[0.6, 0.5, 0.6, 0.5, 0.6], focal=[0.1] * 5))
    assert said.startswith("Undecided: dice with argmax has the highest foreground mIoU, 56.00 %, +2.00 [")
    assert "but 1 of the 2 other pairs is not behind for certain" in said


def test_a_pair_with_fewer_seeds_is_no_rival() -> None:
    said = best_pair_says(_runs(ce=[0.5, 0.5], dice=[0.6, 0.6], ours=[0.9]))
    assert said.startswith("Dice with argmax is best: a foreground mIoU of 60.00 %")
    assert said.endswith("2 seeds only: the intervals know little of training noise.")


def test_one_pair_has_no_rival_and_zero_is_no_score() -> None:
    assert "nothing to compare" in best_pair_says(_runs(ce=[0.5]))
    assert best_pair_says(_runs(ce=[0.0], dice=[0.001])) == (
        "No pair finds the foreground in the test cases: the highest mean IoU is 0.10 %."
    )


def test_with_confusion_matrices_the_interval_is_over_the_cases_too() -> None:
    good = np.tile(np.array([[90, 2], [1, 7]]), (6, 1, 1))
    bad = np.tile(np.array([[88, 4], [2, 6]]), (6, 1, 1))
    said = best_pair_says([_run("ce", 0, 0.5, matrices=bad), _run("ours", 0, 0.7, matrices=good)])
    assert "Ours with argmax is best: a foreground mIoU of 70.00 %, +20.00 [+20.00, +20.00] points" in said
    assert "over seeds and test cases" in said
    assert said.endswith("One seed: nothing is known of training noise.")


def test_decoders_that_decide_alike_are_one_pair() -> None:
    runs = _runs(ce=[0.5, 0.6], ours=[0.7, 0.8])
    runs += [_run("ours", run.seed, run.miou, "offsets") for run in runs[2:]]
    said = best_pair_says(runs)
    assert said.startswith("Ours with argmax or offsets is best: a foreground mIoU of 75.00 %")
    assert "ahead of the next, ce with argmax" in said
