"""Which pair of objective and decoder is best in a task, and how sure that is: what a report says first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .conclusions import few_seeds_say, first_letter, in_points
from .regret import Pair
from .results import FAILURE_IOU
from .scored_runs import ScoredRun
from .scores import paired_comparison, seed_interval

__all__ = ["best_pair_says"]


def best_pair_says(runs: Sequence[ScoredRun]) -> str:
    """Two sentences: the pair with the highest mean IoU and its lead over the next one, and over the best baseline by itself.

    Only pairs that have as many seeds as the most are compared; decoders that decide alike after an objective, such as offsets
    where none was kept, are one pair. The lead is paired by seed, with a bootstrap interval over seeds and test cases where the
    confusion matrices are known, else over seeds. The best of many is chosen by the very numbers that are shown, which flatters
    it; an interval that contains 0 is called undecided.

    Args:
        runs: those of one task and protocol, at least one.

    Example:
        >>> def run(objective, seed, miou):
        ...     return ScoredRun("t", "finetune", objective, objective, objective == "ce", seed, "argmax", miou, None)
        >>> runs = [run("ce", 0, 0.70), run("ce", 1, 0.72), run("ours", 0, 0.73), run("ours", 1, 0.74)]
        >>> best_pair_says(runs)[:83]
        'Ours with argmax is best: a foreground mIoU of 73.50 %, +2.50 [+2.00, +3.00] points'
    """
    by_pair: dict[Pair, dict[int, ScoredRun]] = {}
    for run in runs:
        by_pair.setdefault((run.objective, run.decoder), {})[run.seed] = run
    most = max(map(len, by_pair.values()))
    means = {
        pair: float(np.mean([run.miou for run in found.values()]))
        for pair, found in by_pair.items()
        if len(found) == most
    }
    alike: dict[tuple[str, tuple[float, ...]], list[Pair]] = {}
    for pair in sorted(means, key=lambda pair: -means[pair]):
        scores = tuple(by_pair[pair][seed].miou for seed in sorted(by_pair[pair]))
        alike.setdefault((pair[0], scores), []).append(pair)
    ranked = [pairs[0] for pairs in alike.values()]
    names = {
        pairs[0]: f"{next(iter(by_pair[pairs[0]].values())).label} with {' or '.join(decoder for _, decoder in pairs)}"
        for pairs in alike.values()
    }
    best = ranked[0]
    score = f"{100 * means[best]:.2f} %"
    if not means[best] >= FAILURE_IOU:
        return f"No pair finds the foreground in the test cases: the highest mean IoU is {score}."
    if len(ranked) == 1:
        return first_letter(f"{names[best]} reaches a foreground mIoU of {score}; there is nothing to compare it with.")
    leads = {pair: _lead(by_pair[best], by_pair[pair]) for pair in ranked[1:]}
    reached = sum(not low > 0 for _, low, _ in leads.values())
    second = f"{in_points(*leads[ranked[1]])} points ahead of the next, {names[ranked[1]]}"
    if reached:
        others = f"all {len(leads)}" if reached == len(leads) else f"{reached} of the {len(leads)}"
        said = (
            f"Undecided: {names[best]} has the highest foreground mIoU, {score}, {second}, but {others} other pairs "
            f"{'is' if reached == 1 else 'are'} not behind for certain."
        )
    else:
        said = f"{names[best]} is best: a foreground mIoU of {score}, {second}."
    plain = [pair for pair in ranked if next(iter(by_pair[pair].values())).is_baseline]
    if plain and plain[0] not in (best, ranked[1]):
        said += f" Against the best pair of the baselines, {names[plain[0]]}: {in_points(*leads[plain[0]])}."
    over = "seeds and test cases" if all(run.confusion is not None for run in runs) else "seeds"
    return f"{first_letter(said)} Intervals: 95 %, over {over}.{few_seeds_say(most)}"


def _lead(ours: dict[int, ScoredRun], theirs: dict[int, ScoredRun]) -> tuple[float, float, float]:
    common = sorted(ours.keys() & theirs.keys())
    if not common:
        return float("nan"), float("nan"), float("nan")
    first, second = [ours[seed] for seed in common], [theirs[seed] for seed in common]
    if all(run.confusion is not None for run in [*first, *second]):
        versus = paired_comparison(
            np.stack([np.asarray(run.confusion) for run in first]),
            np.stack([np.asarray(run.confusion) for run in second]),
        )
        return versus.difference, versus.low, versus.high
    differences = np.array([run.miou for run in first]) - np.array([run.miou for run in second])
    return float(differences.mean()), *seed_interval(differences)
