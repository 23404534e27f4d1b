"""The first step of the demos: what is counted in the labels, and the margins that follow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...counting.text_table import format_table


def count_and_show(
    output: Path, labels: Sequence[str | Path], class_names: Sequence[str], unit: str, ignore_index: int | None = None
) -> None:
    """Count label files into ``counts.json`` and print the table of counts and margins; ``unit`` is what is counted."""
    from ...margins import class_margins
    from ...statistics import count_labels

    counts = count_labels(
        [str(label) for label in labels],
        num_classes=len(class_names),
        progress=False,
        names=class_names,
        ignore_index=ignore_index,
    )
    counts.to_json(output / "counts.json")
    margins = class_margins(counts)
    rows = zip(counts.labels, counts.counts, counts.frequencies, margins.negative, margins.positive, strict=True)
    print(
        format_table(
            ["class", unit, "share", "margin rho_0k", "margin rho_k0"],
            [[label, f"{n:,}", f"{share:.2%}", f"{a:.3g}", f"{b:.3g}"] for label, n, share, a, b in rows],
        )
    )
