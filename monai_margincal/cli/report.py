"""Write a report on class counts as one self-contained HTML file: frequencies, margins, presence per case, a recipe to paste.

For a report with findings about the label files themselves, use `margincal count PATHS --report FILE`.
"""

from __future__ import annotations

import argparse

from .console import printing_beside


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("counts", help="JSON file of class counts, as `margincal count --output` writes it")
    parser.add_argument("--output", required=True, help="HTML file to write; an older report is replaced")
    parser.add_argument(
        "--transformed", help="counts of the same data after the training transforms, to show what changed"
    )
    parser.add_argument("--json", help="also write the data of the report to this JSON file")
    parser.add_argument("--tau", type=float, default=1.0, help="scale of the margins")
    parser.add_argument("--upsilon", type=float, default=1.0, help="ratio of the two kinds of margins")
    parser.add_argument("--normalization", choices=("sum", "counts"), default="sum", help="how rho_0k is scaled")


def run(arguments: argparse.Namespace) -> None:
    """Read the counts, write the page."""
    from ..counting.class_counts import ClassCounts
    from ..statistics.report import write_report

    with printing_beside(arguments.output, arguments.json):
        write_report(
            ClassCounts.from_json(arguments.counts),
            arguments.output,
            transformed=None if arguments.transformed is None else ClassCounts.from_json(arguments.transformed),
            json_path=arguments.json,
            tau=arguments.tau,
            upsilon=arguments.upsilon,
            normalization=arguments.normalization,
        )
        print(f"written: {arguments.output}")
