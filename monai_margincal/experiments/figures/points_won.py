"""Points won against rarity: what a few recipes give over one that everybody knows, the rarer the class the further right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...palette import SERIES
from ..regret import Pair
from ..scored_runs import ScoredRun
from ..scores import seed_interval
from .canvas import new_figure


def points_won(runs: Sequence[ScoredRun], task: str, pair: Pair, reference: Pair) -> tuple[float, float, float] | None:
    """Mean difference of the foreground mIoU between two recipes in a task, over the seeds that both have.

    Args:
        runs: of one protocol.
        task: name of the task.
        pair: objective and decoder.
        reference: the same of what it is compared with.

    Returns:
        the difference in points and the ends of its 95 % bootstrap interval over the seeds; None where no seed has both.

    Example:
        >>> run = lambda name, seed, miou: ScoredRun("t", "finetune", name, name, True, seed, "argmax", miou, None)
        >>> runs = [run("ce", 0, 0.5), run("ce", 1, 0.6), run("dice", 0, 0.55), run("dice", 1, 0.67)]
        >>> [round(value, 2) for value in points_won(runs, "t", ("dice", "argmax"), ("ce", "argmax"))]
        [6.0, 5.0, 7.0]
    """
    found: dict[Pair, dict[int, float]] = {pair: {}, reference: {}}
    for run in runs:
        if run.task == task and (run.objective, run.decoder) in found:
            found[run.objective, run.decoder][run.seed] = run.miou
    common = sorted(found[pair].keys() & found[reference].keys())
    if not common:
        return None
    differences = np.array([found[pair][seed] - found[reference][seed] for seed in common])
    low, high = seed_interval(differences)
    return float(100 * differences.mean()), 100 * low, 100 * high


def points_won_figure(
    runs: Sequence[ScoredRun],
    tasks: Mapping[str, str],
    recipes: Mapping[str, Pair],
    reference: tuple[str, Pair],
) -> Any:
    """Bars of the points that recipes win in each task, with 95 % intervals.

    Args:
        runs: of one protocol.
        tasks: task -> what the axis calls it, from common to rare.
        recipes: what the legend calls a recipe -> objective and decoder; at most four can be told apart.
        reference: name, and objective and decoder, of what the points are won over.

    Returns:
        a matplotlib figure; a recipe that was not run in a task has no bar there.
    """
    figure = new_figure(8.3, 4.2)
    axis = figure.subplots()
    width = 0.8 / len(recipes)
    for number, (label, pair) in enumerate(recipes.items()):
        places, values, ends = [], [], []
        for place, task in enumerate(tasks):
            won = points_won(runs, task, pair, reference[1])
            if won is not None:
                places.append(place + (number - (len(recipes) - 1) / 2) * width)
                values.append(won[0])
                ends.append((won[0] - won[1], won[2] - won[0]))
        axis.bar(places, values, 0.92 * width, color=SERIES[number], label=label)
        axis.errorbar(places, values, np.array(ends).T, fmt="none", ecolor="black", elinewidth=1, capsize=2.5)
    axis.axhline(0, color="black", linewidth=0.8)
    axis.set_xticks(range(len(tasks)), list(tasks.values()), fontsize=10)
    axis.set_ylabel(f"points of foreground mIoU\nover {reference[0]}", fontsize=10.5)
    axis.set_xlabel("share of the voxels that the classes have: from common to rare", fontsize=10.5)
    axis.grid(axis="y", alpha=0.25)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    axis.legend(loc="upper left", frameon=False, fontsize=10)
    return figure
