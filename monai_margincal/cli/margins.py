"""Show the margin-offsets that follow from class counts, and what the generalization bound says of them.

The last line can be pasted into a bundle as the arguments of MarginCalibrationLoss.
"""

from __future__ import annotations

import argparse
import json

from .table import format_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("counts", help="JSON file of class counts, as `margincal count --output` writes it")
    parser.add_argument("--tau", type=float, default=1.0, help="scale of the margins")
    parser.add_argument("--upsilon", type=float, default=1.0, help="ratio of the two kinds of margins")
    parser.add_argument("--normalization", choices=("sum", "counts"), default="sum", help="how rho_0k is scaled")


def run(arguments: argparse.Namespace) -> None:
    """Print the table and the JSON."""
    from ..counting.class_counts import ClassCounts
    from ..margins import class_margins

    counts = ClassCounts.from_json(arguments.counts)
    margins = class_margins(counts, arguments.tau, arguments.upsilon, arguments.normalization)
    rows = zip(counts.labels, counts.counts, counts.frequencies, margins.negative, margins.positive, strict=True)
    print(
        format_table(
            ["class", "voxels", "share", "rho_0k (negative)", "rho_k0 (positive)"],
            [[label, f"{n:,}", f"{share:.4%}", f"{a:.6g}", f"{b:.6g}"] for label, n, share, a, b in rows],
        )
    )
    print(json.dumps({"margins": margins.to_dict()["margins"]}))
