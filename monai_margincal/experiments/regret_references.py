"""What the regret of a recipe is measured from: the best pair of the baselines, chosen on these test cases or on others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from .scored_runs import ScoredRun
from .scores import foreground_iou

__all__ = ["Pair", "Reference", "best_here", "best_of_other_folds", "best_of_other_seeds"]

#: an objective and a decoder
Pair = tuple[str, str]

#: pair -> seed -> run, of the baselines that have every seed
Baselines = Mapping[Pair, Mapping[int, ScoredRun]]


@dataclass(frozen=True)
class Reference:
    """What the runs of a recipe are compared with.

    Attributes:
        runs: seed -> run.
        pairs: the pair of every seed, or of every fold.
    """

    runs: Mapping[int, ScoredRun]
    pairs: Mapping[int, Pair]


def best_here(baselines: Baselines) -> Reference:
    """The pair with the best mean over all seeds, on the very cases that are compared."""
    best = max(baselines, key=lambda pair: _mean(baselines[pair]))
    return Reference(baselines[best], dict.fromkeys(baselines[best], best))


def best_of_other_seeds(baselines: Baselines) -> Reference | None:
    """For every seed the pair with the best mean over the others; None for fewer than two seeds."""
    seeds = list(next(iter(baselines.values())))
    if len(seeds) < 2:
        return None
    pairs = {
        seed: max(baselines, key=lambda pair, seed=seed: _mean(baselines[pair], without=seed))  # type: ignore[misc]
        for seed in seeds
    }
    return Reference({seed: baselines[pair][seed] for seed, pair in pairs.items()}, pairs)


def best_of_other_folds(baselines: Baselines) -> Reference | None:
    """For the cases of every fold the pair that is best on those of the others; None where there are no folds or no cases."""
    runs = [run for by_seed in baselines.values() for run in by_seed.values()]
    sizes = {run.fold_sizes for run in runs}
    if len(sizes) != 1 or len(next(iter(sizes))) < 2 or any(run.confusion is None for run in runs):
        return None
    (sizes_of_folds,) = sizes
    fold_of = np.repeat(np.arange(len(sizes_of_folds)), sizes_of_folds)
    pairs = {}
    for fold in range(len(sizes_of_folds)):
        others = fold_of != fold
        pairs[fold] = max(baselines, key=lambda pair, others=others: _mean_on(baselines[pair], others))  # type: ignore[misc]
    composed = {}
    for seed, run in next(iter(baselines.values())).items():
        parts = [np.asarray(baselines[pairs[fold]][seed].confusion)[fold_of == fold] for fold in pairs]
        confusion = np.concatenate(parts)
        composed[seed] = replace(run, confusion=confusion, miou=float(foreground_iou(confusion.sum(0))))
    return Reference(composed, pairs)


def _mean(by_seed: Mapping[int, ScoredRun], without: int | None = None) -> float:
    return float(np.mean([run.miou for seed, run in by_seed.items() if seed != without]))


def _mean_on(by_seed: Mapping[int, ScoredRun], cases: np.ndarray) -> float:
    return float(np.mean([foreground_iou(np.asarray(run.confusion)[cases].sum(0)) for run in by_seed.values()]))
