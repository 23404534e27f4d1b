"""Show the margin-offsets that follow from class counts, and the loss and decision that fit the rarest class, ready to paste.

The rule is that of docs/objectives.md: the share of the rarest class of the foreground chooses. The Python piece goes into a
training script, the JSON piece into a bundle's configuration; --only prints one of them and nothing else, for a file.
"""

from __future__ import annotations

import argparse

from ..counting.text_table import format_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("counts", help="JSON file of class counts, as `margincal count --output` writes it")
    parser.add_argument("--tau", type=float, default=1.0, help="scale of the margins")
    parser.add_argument("--upsilon", type=float, default=1.0, help="ratio of the two kinds of margins")
    parser.add_argument("--normalization", choices=("sum", "counts"), default="sum", help="how rho_0k is scaled")
    parser.add_argument("--only", choices=("python", "bundle"), help="print this piece and nothing else")


def run(arguments: argparse.Namespace) -> None:
    """Print the table, the recipe and its two pieces."""
    from ..counting.class_counts import ClassCounts
    from ..margins import class_margins
    from ..statistics.recipe_snippets import chosen_recipe

    counts = ClassCounts.from_json(arguments.counts)
    given = {"tau": arguments.tau, "upsilon": arguments.upsilon, "normalization": arguments.normalization}
    margins = class_margins(counts, **given)
    recipe = chosen_recipe(counts, **given)
    if arguments.only:
        print(recipe[arguments.only], end="")
        return
    rows = zip(counts.labels, counts.counts, counts.frequencies, margins.negative, margins.positive, strict=True)
    print(
        format_table(
            ["class", "voxels", "share", "rho_0k (negative)", "rho_k0 (positive)"],
            [[label, f"{n:,}", f"{share:.4%}", f"{a:.6g}", f"{b:.6g}"] for label, n, share, a, b in rows],
        )
    )
    print(f"\nrarest class: {recipe['rarest']}, {recipe['share']:.4%} of the voxels ({recipe['chosen_by']})")
    print(f"recipe:       {recipe['case']}")
    print(f"loss:         {recipe['loss']}")
    print(f"measured:     {recipe['reason']}")
    print(f"decision:     {recipe['decision']}")
    counted = f", with {recipe['counted']}" if recipe["counted"] else ""
    print(f"\nIn a training script{counted}:\n\n{recipe['python']}")
    print(f"In a bundle{counted}:\n\n{recipe['bundle']}", end="")
