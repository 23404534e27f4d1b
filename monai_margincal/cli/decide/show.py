"""Show a file of offsets: each class's offset, the thresholds of two classes, what it was fitted on and what it is worth.

The bundles write one beside their weights, `margincal decide fit` wherever you like.

  margincal decide show models/decision.json
  margincal decide show models/decision.json --json
"""

from __future__ import annotations

import argparse
from typing import Any

from ..answer import Answer, add_json_argument

#: of the JSON object of `fit` and `show`
OFFSET_KEYS = {
    "offsets": "one per class, added to its logits",
    "class_names": "names in the order of the ids, or null",
    "fitted_on": "what the fit noted: cases, voxels, score, gain, confusion matrices; or null",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the sub-verb."""
    parser.add_argument("decision", metavar="FILE", help="JSON file of offsets, such as models/decision.json")
    add_json_argument(parser, OFFSET_KEYS)


def run(arguments: argparse.Namespace) -> Answer:
    """Read the file."""
    from ...decisions import ClassOffsets
    from ...decisions.offsets_summary import summary_lines

    offsets = ClassOffsets.from_json(arguments.decision)
    return Answer("\n".join(summary_lines(offsets)), offset_data(offsets))


def offset_data(offsets: Any) -> dict[str, Any]:
    """The JSON object of offsets."""
    return {
        "offsets": list(offsets.offsets),
        "class_names": None if offsets.class_names is None else list(offsets.class_names),
        "fitted_on": None if offsets.fitted_on is None else dict(offsets.fitted_on),
    }
