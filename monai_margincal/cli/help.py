"""Show the help of a verb: the same as `margincal VERB --help`.

Without a verb, the list of all.

  margincal help
  margincal help count
  margincal help decide fit
"""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("words", nargs="*", metavar="VERB", help="a verb, and a verb of that one")


def run(arguments: argparse.Namespace) -> None:
    """Print it, and end as `--help` does."""
    from . import build_parser

    build_parser().parse_args([*arguments.words, "--help"])
