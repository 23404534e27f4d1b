"""The picture on top of the README, drawn from the committed runs of the study: `python docs/_site/pictures.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from monai_margincal.experiments.figures import figure_bytes, points_won_figure
from monai_margincal.experiments.scored_runs import read_scored_runs

DOCS = Path(__file__).parents[1]
RARITY = DOCS / "images" / "rarity.png"

#: from common to rare; what is drawn of each task
TASKS = {
    "slices-160": "2.6 %\nslices,\n160 cases",
    "slices-40": "2.6 %\nslices,\n40 cases",
    "volumes-40": "2.6 %\nvolumes",
    "depth-2": "0.5 to 0.9 %\nvolumes",
    "depth-3": "0.1 to 0.3 %\nvolumes",
    "depth-4": "0.005 to 0.07 %\nvolumes",
}
REFERENCE = ("cross-entropy and argmax", ("cross_entropy", "argmax"))
RECIPES = {
    "cross-entropy, offsets fitted": ("cross_entropy", "IoU threshold"),
    "Dice + cross-entropy, argmax": ("dice_ce", "argmax"),
    "margins + Tversky (base e), argmax": ("margins_tversky_e", "argmax"),
    "margins + Tversky (base e), offsets fitted": ("margins_tversky_e", "IoU threshold"),
}


def rarity_figure() -> Any:
    """Points won over cross-entropy in the six tasks of the hippocampus study."""
    runs = read_scored_runs([DOCS / "study" / name / "results.csv" for name in ("hippocampus", "rarity")])
    return points_won_figure([run for run in runs if run.protocol == "finetune"], TASKS, RECIPES, REFERENCE)


if __name__ == "__main__":
    RARITY.write_bytes(figure_bytes(rarity_figure()))
