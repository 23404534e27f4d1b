"""Offsets per class, which decide for the IoU: fit them on saved logits, show them, or bake them into weights.

A training and an evaluation of the bundle fit them by themselves; `fit` is for logits of any other program.

  margincal decide fit validation --names background lesion --output decision.json
  margincal decide show decision.json
  margincal decide bake model.pt decision.json baked.pt
"""

from __future__ import annotations

import argparse

from ..answer import Answer
from ..parsers import common_options, split_examples
from . import bake, fit, show

#: sub-verb -> (module, one line of help)
_SUB_VERBS = {
    "fit": (fit, "fit offsets on saved logits and labels"),
    "show": (show, "show offsets, thresholds and what they were fitted on"),
    "bake": (bake, "write offsets into the bias of a network's last convolution"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb: sub-verbs with arguments of their own."""
    verbs = parser.add_subparsers(dest="sub_verb", required=True, metavar="fit|show|bake")
    for name, (module, summary) in _SUB_VERBS.items():
        text, examples = split_examples(module.__doc__)
        sub = verbs.add_parser(name, help=summary, description=text, epilog=examples, parents=[common_options()])
        module.add_arguments(sub)
        sub.set_defaults(parser=sub)


def run(arguments: argparse.Namespace) -> Answer:
    """Run a sub-verb."""
    module, _ = _SUB_VERBS[arguments.sub_verb]
    return module.run(arguments)
