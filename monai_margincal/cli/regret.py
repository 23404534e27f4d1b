"""Which recipe is never far from the best? Several studies together: every objective and decoder against the best baselines.

Reads results.csv files that `margincal compare` has written, prints every recipe's worst case over all their tasks, and writes
regret.md and a figure into the output folder.
"""

from __future__ import annotations

import argparse

from ..counting.text_table import format_table
from ..extras import require


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("results", nargs="+", help="results.csv of one or more studies")
    parser.add_argument("--output", default="regret", help="folder of regret.md and the figure")


def run(arguments: argparse.Namespace) -> None:
    """Print the worst cases and write the report."""
    require("matplotlib", extra="experiments", purpose="the figure of regret")
    from ..experiments.regret_report import write_regret_report

    rows, written = write_regret_report(arguments.results, arguments.output)
    most = len(rows[0].tasks)
    print(
        format_table(
            ["objective, decoder", "tasks", "points behind, worst case", "in", "reference of other seeds"],
            [
                [
                    row.label,
                    str(len(row.tasks)),
                    f"{100 * row.worst.chosen_here.value:.2f}",
                    row.worst.task,
                    "-"
                    if row.worst_elsewhere is None or row.worst_elsewhere.chosen_elsewhere is None
                    else f"{100 * row.worst_elsewhere.chosen_elsewhere.value:.2f}",
                ]
                for row in rows
                if len(row.tasks) == most
            ],
        )
    )
    if fewer := sum(len(row.tasks) < most for row in rows):
        print(f"{fewer} more were run in fewer tasks: see the report")
    for path in written:
        print(f"written: {path}")
