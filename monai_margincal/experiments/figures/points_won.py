"""Points won against rarity: what a few recipes give over one that everybody knows, the rarer the class the further right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...palette import SERIES
from ..conclusions import in_points
from ..regret import Pair
from ..scored_runs import ScoredRun
from ..scores import seed_interval
from .canvas import add_header, legend_dot, new_figure, tidy


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
    """Bars of the points that recipes win in each task, with 95 % intervals; a cross on the axis where a recipe was not run.

    Args:
        runs: of one protocol.
        tasks: task -> what the axis calls it, from common to rare.
        recipes: what the key calls a recipe -> objective and decoder; at most four can be told apart.
        reference: name, and objective and decoder, of what the points are won over.
    """
    from matplotlib.patches import Patch

    figure = new_figure(3.5)
    axis = figure.subplots()
    width = 0.8 / len(recipes)
    won = {
        (task, label): points_won(runs, task, pair, reference[1]) for task in tasks for label, pair in recipes.items()
    }
    missing = []
    for number, label in enumerate(recipes):
        places, values, ends = [], [], []
        for place, task in enumerate(tasks):
            x = place + (number - (len(recipes) - 1) / 2) * width
            found = won[task, label]
            if found is None:
                missing.append((x, SERIES[number]))
                continue
            places.append(x)
            values.append(found[0])
            ends.append((found[0] - found[1], found[2] - found[0]))
        axis.bar(places, values, 0.92 * width, color=SERIES[number], label=label)
        axis.errorbar(places, values, np.array(ends).T, fmt="none", ecolor="black", elinewidth=1, capsize=2.5)
    handles = [Patch(color=SERIES[number], label=label) for number, label in enumerate(recipes)]
    for x, colour in missing:
        axis.plot(x, 0, "x", color=colour, markersize=5, zorder=3)
    if missing:
        handles.append(legend_dot("black", "not run", "x"))
    handles.append(_interval_key())
    axis.axhline(0, color="black", linewidth=0.8)
    axis.set_xticks(range(len(tasks)), list(tasks.values()))
    axis.set_ylabel(f"points of foreground mIoU\nover {reference[0]}", fontsize=9)
    axis.set_xlabel("share of the voxels that each class has: from common to rare", fontsize=9)
    tidy(axis, "y")
    axis.tick_params(axis="x", length=0)
    return add_header(figure, _says(won, tasks, reference[0]), handles, columns=2)


def _interval_key() -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color="black", linewidth=1, label="95 % interval over seeds")


def _says(
    won: Mapping[tuple[str, str], tuple[float, float, float] | None], tasks: Mapping[str, str], reference: str
) -> str:
    """Where the most is won, and where the least."""
    best = {
        task: max((label for of, label in won if of == task and won[of, label]), key=lambda one: won[task, one] or (0,))
        for task in tasks
        if any(won[of, label] for of, label in won if of == task)
    }
    ends = {task: won[task, label] or (0.0, 0.0, 0.0) for task, label in best.items()}
    most, least = max(ends, key=lambda task: ends[task][0]), min(ends, key=lambda task: ends[task][0])
    low, high = (_words(ends[task]) for task in (least, most))
    said = f"Most is won over {reference} at {_first_line(tasks[most])}: {high} points with {best[most]}."
    if most == least:
        return said
    return f"{said} Least at {_first_line(tasks[least])}: {low} with {best[least]}."


def _words(found: tuple[float, float, float]) -> str:
    return in_points(*(value / 100 for value in found))


def _first_line(name: str) -> str:
    return name.split("\n")[0]
