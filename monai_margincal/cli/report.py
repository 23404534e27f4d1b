"""Write a report on class counts as one self-contained HTML file: frequencies, margins, presence per case, a recipe to paste.

For a report with findings about the label files themselves, use `margincal count PATHS --report FILE`.

  margincal report counts.json --output report.html
  margincal report raw.json --transformed seen.json --output report.html
  margincal report counts.json --output report.html --json > report.json
"""

from __future__ import annotations

import argparse

from .answer import Answer

#: `--json` without a file
_STANDARD_OUTPUT = "/dev/stdout"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument(
        "counts", metavar="FILE", help="JSON file of class counts, as `margincal count --output` writes it"
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="HTML file to write; an older report is replaced"
    )
    parser.add_argument(
        "--transformed",
        metavar="FILE",
        help="counts of the same data after the training transforms, to show what changed",
    )
    parser.add_argument(
        "--json",
        nargs="?",
        const=_STANDARD_OUTPUT,
        metavar="FILE",
        help="also write the data of the report to this JSON file, or print them where no file is named",
    )
    parser.add_argument("--tau", type=float, metavar="T", default=1.0, help="scale of the margins")
    parser.add_argument("--upsilon", type=float, metavar="U", default=1.0, help="ratio of the two kinds of margins")
    parser.add_argument("--normalization", choices=("sum", "counts"), default="sum", help="how rho_0k is scaled")


def run(arguments: argparse.Namespace) -> Answer:
    """Read the counts, write the page."""
    from ..counting.class_counts import ClassCounts
    from ..statistics.report import write_report

    write_report(
        ClassCounts.from_json(arguments.counts),
        arguments.output,
        transformed=None if arguments.transformed is None else ClassCounts.from_json(arguments.transformed),
        json_path=arguments.json,
        tau=arguments.tau,
        upsilon=arguments.upsilon,
        normalization=arguments.normalization,
    )
    return Answer(written=[path for path in (arguments.output, arguments.json) if path])
