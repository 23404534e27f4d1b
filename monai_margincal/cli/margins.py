"""Show the margin-offsets that follow from class counts, and the loss and decision that fit the rarest class, ready to paste.

The rule is that of docs/objectives.md: the share of the rarest class of the foreground chooses. The Python piece goes into a
training script, the JSON piece into a bundle's configuration; --only prints one of them and nothing else, for a file.

  margincal margins counts.json
  margincal margins counts.json --tau 2 --only bundle > loss.json
"""

from __future__ import annotations

import argparse

from ..counting.text_table import format_table
from .answer import Answer, add_json_argument

_KEYS = {
    "classes": "a list of id, name, voxels, share, rho_0k and rho_k0",
    "tau": "as given",
    "upsilon": "as given",
    "normalization": "as given",
    "recipe": "the case of the rule, such as 'below 1 %'",
    "rarest": "the class of the foreground that chose the recipe",
    "share": "its share of the voxels",
    "loss": "the loss in words",
    "reason": "what was measured",
    "decision": "how to decide",
    "python": "the piece for a script",
    "bundle": "the piece for a bundle, as text",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument(
        "counts", metavar="FILE", help="JSON file of class counts, as `margincal count --output` writes it"
    )
    parser.add_argument("--tau", type=float, metavar="T", default=1.0, help="scale of the margins")
    parser.add_argument("--upsilon", type=float, metavar="U", default=1.0, help="ratio of the two kinds of margins")
    parser.add_argument("--normalization", choices=("sum", "counts"), default="sum", help="how rho_0k is scaled")
    parser.add_argument("--only", choices=("python", "bundle"), help="print this piece and nothing else")
    add_json_argument(parser, _KEYS)


def run(arguments: argparse.Namespace) -> Answer:
    """The table, the recipe and its two pieces."""
    from ..counting.class_counts import ClassCounts
    from ..margins import class_margins
    from ..pages.numbers import readable_share
    from ..statistics.recipe_snippets import chosen_recipe

    counts = ClassCounts.from_json(arguments.counts)
    given = {"tau": arguments.tau, "upsilon": arguments.upsilon, "normalization": arguments.normalization}
    margins = class_margins(counts, **given)
    recipe = chosen_recipe(counts, **given)
    columns = (counts.ids, counts.names or [None] * len(counts), counts.counts, counts.frequencies)
    rows = list(zip(*columns, margins.negative.tolist(), margins.positive.tolist(), strict=True))
    keys = ("id", "name", "voxels", "share", "rho_0k", "rho_k0")
    data = {
        "classes": [
            dict(zip(keys, (i, name, int(n), float(share), a, b), strict=True)) for i, name, n, share, a, b in rows
        ],
        **given,
        "recipe": recipe["case"],
        **{key: recipe[key] for key in ("rarest", "share", "loss", "reason", "decision", "python", "bundle")},
    }
    if arguments.only:
        return Answer(recipe[arguments.only].rstrip("\n"), data)
    table = format_table(
        ["class", "voxels", "share", "rho_0k (negative)", "rho_k0 (positive)"],
        [
            [label, f"{n:,}", readable_share(share), f"{a:.6g}", f"{b:.6g}"]
            for label, (_, _, n, share, a, b) in zip(counts.labels, rows, strict=True)
        ],
    )
    counted = f", with {recipe['counted']}" if recipe["counted"] else ""
    text = f"""{table}

rarest class: {recipe["rarest"]}, {readable_share(recipe["share"])} of the voxels ({recipe["chosen_by"]})
recipe:       {recipe["case"]}
loss:         {recipe["loss"]}
measured:     {recipe["reason"]}
decision:     {recipe["decision"]}

In a training script{counted}:

{recipe["python"]}
In a bundle{counted}:

{recipe["bundle"]}"""
    return Answer(text.rstrip("\n"), data)
