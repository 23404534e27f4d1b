"""Training and validation curves of one task, cross-entropy against the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...palette import SERIES
from ..results import Run
from ..study import Study
from .canvas import new_figure


def convergence_figure(study: Study, runs: Sequence[Run], task: str, objectives: Sequence[str]) -> Any | None:
    """Validation mIoU, training loss and the gap between the two losses, as means over the seeds.

    Losses of different objectives have different scales, and controllers change them during training, so each is divided by its
    own final validation loss.

    Args:
        study: of the runs.
        runs: finished cells.
        task: name.
        objectives: names of those to show; those without a finished run that has a validation curve are left out.
    """
    figure = new_figure(10.5, 4.0)
    axes = figure.subplots(1, 3)
    shown = False
    for objective, colour in zip(objectives, SERIES, strict=False):
        chosen = [run for run in runs if (run.cell.task, run.cell.objective) == (task, objective)]
        histories = [run.record["history"] for run in chosen if run.cell.protocol == "finetune"]
        histories = [h for h in histories if len(h["steps"]) > 1 and not h["diverged"]]
        if not histories:
            continue
        shown = True
        steps = histories[0]["steps"]
        miou = 100 * np.array([h["validation_miou"] for h in histories])
        scale = np.array([h["validation_loss"][-1] for h in histories])[:, None]
        validation = np.array([h["validation_loss"][1:] for h in histories]) / scale
        training = np.array([h["training_loss"][1:] for h in histories], dtype=float) / scale
        label = f"{study.label(objective)} (seeds: {len(histories)})"
        axes[0].plot(steps, miou.mean(0), color=colour, marker="o", markersize=3, label=label)
        if len(histories) > 1:
            sd = miou.std(0, ddof=1)
            axes[0].fill_between(steps, miou.mean(0) - sd, miou.mean(0) + sd, color=colour, alpha=0.12, linewidth=0)
        axes[1].plot(steps[1:], training.mean(0), color=colour, marker="o", markersize=3, label="training")
        axes[1].plot(steps[1:], validation.mean(0), color=colour, linestyle="--", label="validation")
        axes[2].plot(steps[1:], (validation - training).mean(0), color=colour, marker="o", markersize=3)
    if not shown:
        return None
    axes[0].set(title="validation mIoU, %", xlabel="fine-tuning step")
    axes[1].set(title="loss: training (solid), validation (dashed)", xlabel="fine-tuning step")
    axes[1].set_ylabel("share of the last validation loss")
    axes[2].set(title="validation minus training loss", xlabel="fine-tuning step")
    for axis in axes:
        axis.grid(alpha=0.25)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure
