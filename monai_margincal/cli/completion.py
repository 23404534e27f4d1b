"""Print a script that makes a shell complete verbs, options, choices and files.

It is read once by the shell, so a new version of this package needs it again. Where it goes:

  bash   ~/.local/share/bash-completion/completions/margincal
  zsh    a folder of fpath, as _margincal
  tcsh   a line in ~/.tcshrc that sources it

  margincal completion bash > ~/.local/share/bash-completion/completions/margincal
  margincal completion zsh > ~/.zsh/completions/_margincal
"""

from __future__ import annotations

import argparse
from typing import Any

from ..extras import require
from .answer import Answer
from .parsers import all_parsers

_SHELLS = ("bash", "zsh", "tcsh")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("shell", choices=_SHELLS, metavar="SHELL", help=", ".join(_SHELLS))


def run(arguments: argparse.Namespace) -> Answer:
    """Let shtab write the script."""
    shtab = require("shtab", extra="completion", purpose="shell completion")
    from . import build_parser

    parser = build_parser()
    # what a value is follows from how the help calls it
    kinds = {"FILE": shtab.FILE, "DIR": shtab.DIRECTORY, "PATH": shtab.FILE, "SCAN": shtab.FILE}
    for one in all_parsers(parser):
        for action in one._actions:
            if action.metavar in kinds:
                completed: Any = action
                completed.complete = kinds[action.metavar]
    return Answer(shtab.complete(parser, shell=arguments.shell).rstrip("\n"))
