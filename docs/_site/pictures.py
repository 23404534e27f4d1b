"""The pictures of the study that the pages show, drawn from its committed files: `python docs/_site/pictures.py`.

They need no training and no data: results.csv, comparisons.csv and curves.csv of each study, and its settings. `margincal
regret` draws its own.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from monai_margincal.experiments import Study
from monai_margincal.experiments.curves import read_curves
from monai_margincal.experiments.figures import figure_bytes, points_won_figure
from monai_margincal.experiments.read_summaries import read_summaries
from monai_margincal.experiments.scored_runs import read_scored_runs
from monai_margincal.experiments.study_figures import curve_figures, result_figures
from monai_margincal.files import replacing

DOCS = Path(__file__).parents[1]
STUDY = DOCS / "study"
RARITY = DOCS / "images" / "rarity.png"

#: a picture that a page shows or links to: study and name
SHOWN = re.compile(r"\b(\w+)/figures/([\w-]+)\.png")

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
    runs = read_scored_runs([STUDY / name / "results.csv" for name in ("hippocampus", "rarity")])
    return points_won_figure([run for run in runs if run.protocol == "finetune"], TASKS, RECIPES, REFERENCE)


def shown_pictures() -> dict[str, set[str]]:
    """Study -> names of its pictures on the pages."""
    found: dict[str, set[str]] = {}
    for page in sorted(DOCS.rglob("*.md")):
        for study, name in SHOWN.findall(page.read_text(encoding="utf-8")):
            found.setdefault(study, set()).add(name)
    return found


def study_pictures(name: str) -> dict[str, Any]:
    """Name -> figure of everything that the files of a study give."""
    study = Study.from_file(STUDY / f"{name}.yaml")
    summaries = read_summaries(study, STUDY / name)
    figures = result_figures(study, summaries)
    curves = STUDY / name / "curves.csv"
    if curves.is_file():
        figures |= curve_figures(study, summaries, read_curves(curves))
    return {stem: figure for stem, (_, figure) in figures.items()}


def main() -> None:
    """Draw them all, and remove those that no page shows any longer."""
    made = {RARITY: rarity_figure()}
    for study, names in shown_pictures().items():
        figures = study_pictures(study)
        made |= {STUDY / study / "figures" / f"{name}.png": figures[name] for name in sorted(names)}
    for path, figure in made.items():
        with replacing(path) as beside:
            beside.write_bytes(figure_bytes(figure))
        print(path.relative_to(DOCS))
    for path in STUDY.glob("*/figures/*.png"):
        if path not in made:
            path.unlink()


if __name__ == "__main__":
    main()
