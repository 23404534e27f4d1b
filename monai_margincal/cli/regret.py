"""Which recipe is never far from the best? Several studies together: every objective and decoder against the best baselines.

Reads results.csv files that `margincal compare` has written, prints every recipe's worst case over all their tasks, and writes
regret.md and a figure into the output folder.

  margincal regret first/results.csv second/results.csv --output regret
"""

from __future__ import annotations

import argparse

from ..counting.text_table import format_table
from ..extras import require
from .answer import Answer, add_json_argument


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("results", nargs="+", metavar="FILE", help="results.csv of one or more studies")
    parser.add_argument("-o", "--output", metavar="DIR", default="regret", help="folder of regret.md and the figure")
    add_json_argument(
        parser,
        {
            "recipes": "a list of objective, decoder, label, tasks, worst_task, points_behind, and points_behind_other_seeds: "
            "against the reference that other folds or seeds chose, or null"
        },
    )


def run(arguments: argparse.Namespace) -> Answer:
    """The worst cases, and the report."""
    require("matplotlib", extra="experiments", purpose="the figure of regret")
    from ..experiments.regret_report import write_regret_report

    rows, written = write_regret_report(arguments.results, arguments.output)
    recipes = [
        {
            "objective": row.pair[0],
            "decoder": row.pair[1],
            "label": row.label,
            "tasks": len(row.tasks),
            "worst_task": row.worst.task,
            "points_behind": 100 * row.worst.chosen_here.value,
            "points_behind_other_seeds": None
            if row.worst_elsewhere is None or row.worst_elsewhere.chosen_elsewhere is None
            else 100 * row.worst_elsewhere.chosen_elsewhere.value,
        }
        for row in rows
    ]
    in_all = [recipe for recipe in recipes if recipe["tasks"] == recipes[0]["tasks"]]
    table = format_table(
        ["objective, decoder", "tasks", "points behind, worst case", "in", "reference of other folds or seeds"],
        [
            [
                str(recipe["label"]),
                str(recipe["tasks"]),
                f"{recipe['points_behind']:.2f}",
                str(recipe["worst_task"]),
                "-" if recipe["points_behind_other_seeds"] is None else f"{recipe['points_behind_other_seeds']:.2f}",
            ]
            for recipe in in_all
        ],
    )
    fewer = len(recipes) - len(in_all)
    notes = [f"{fewer} more were run in fewer tasks: see the report"] if fewer else []
    return Answer(table, {"recipes": recipes}, notes, written)
