"""Show a file of offsets: each class's offset, the thresholds of two classes, what it was fitted on and what it is worth."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the sub-verb."""
    parser.add_argument("decision", help="JSON file of offsets, such as models/decision.json")


def run(arguments: argparse.Namespace) -> None:
    """Print the lines."""
    from ..decisions import ClassOffsets
    from ..decisions.offsets_summary import summary_lines

    print("\n".join(summary_lines(ClassOffsets.from_json(arguments.decision))))
