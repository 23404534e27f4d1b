"""Regret over the tasks of one study, or of several results.csv together: a table and a figure per protocol."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..files import replacing, write_text
from .conclusions import first_letter
from .figures import figure_bytes, regret_figure, regret_says
from .regret import RegretRow, regret_rows
from .regret_table import regret_table
from .scored_runs import ScoredRun, read_scored_runs
from .table_form import Table
from .tables import PROTOCOL_NAMES

__all__ = ["regret_by_protocol", "write_regret_report"]


def regret_by_protocol(runs: Sequence[ScoredRun]) -> dict[str, tuple[list[RegretRow], Table, Any]]:
    """Protocol -> (rows, table, matplotlib figure), of the protocols with a baseline."""
    with_cases = all(run.confusion is not None for run in runs)
    found = {}
    for protocol in dict.fromkeys(run.protocol for run in runs):
        rows = regret_rows([run for run in runs if run.protocol == protocol])
        if rows:
            where = PROTOCOL_NAMES[protocol]
            found[protocol] = (rows, regret_table(rows, where, with_cases=with_cases), regret_figure(rows))
    return found


def write_regret_report(
    results: Sequence[str | os.PathLike[str]], output: str | os.PathLike[str]
) -> tuple[list[RegretRow], list[Path]]:
    """Write regret.md and one figure per protocol for several studies together.

    Args:
        results: paths of results.csv.
        output: folder to write into.

    Returns:
        the rows of the first protocol, and the files.

    Raises:
        ValueError: a file is no results.csv, or there is no baseline in them.
    """
    runs = read_scored_runs(results)
    found = regret_by_protocol(runs)
    if not found:
        raise ValueError(
            f"{', '.join(map(str, results))}: found no run of the group 'baseline', expected one to compare with"
        )
    says = [f"{PROTOCOL_NAMES[protocol]}: {regret_says(rows)}" for protocol, (rows, _, _) in found.items()]
    lines = "".join(f"* {first_letter(line)}\n" for line in says)
    text = "\n".join(["# Regret\n", lines, *(table.markdown() for _, table, _ in found.values())])
    written = [Path(output) / "regret.md"]
    write_text(written[0], text)
    for protocol, (_, _, figure) in found.items():
        path = Path(output) / f"{protocol}_regret.png"
        with replacing(path) as beside:
            beside.write_bytes(figure_bytes(figure))
        written.append(path)
    return next(iter(found.values()))[0], written
