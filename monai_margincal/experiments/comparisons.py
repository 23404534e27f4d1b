"""The paired differences of a study as comparisons.csv: their intervals cannot be computed from results.csv."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable

from .results import Summary
from .scores import Comparison
from .study_rows import study_rows

__all__ = ["Key", "comparisons_csv", "read_comparisons"]

_KEYS = ("task", "protocol", "objective", "decoder", "reference")
_SCORES = ("difference", "low", "high", "case_wins")
_COUNTS = ("wins", "ties", "losses")

#: task, protocol, objective, decoder
Key = tuple[str, str, str, str]


def comparisons_csv(summaries: Iterable[Summary]) -> str:
    """One line per objective and reference; differences are fractions of 1.

    ``reference`` is what tables call it; it is empty in the line of the comparison with the best baseline.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, [*_KEYS, *_SCORES, *_COUNTS], lineterminator="\n")
    writer.writeheader()
    for summary in summaries:
        against = {"": summary.comparison} if summary.comparison is not None else {}
        for reference, versus in (against | summary.against).items():
            row = {key: getattr(summary, key) for key in _KEYS[:-1]} | {"reference": reference}
            row |= {name: f"{getattr(versus, name):.6g}" for name in _SCORES}
            writer.writerow(row | {name: getattr(versus, name) for name in _COUNTS})
    return text.getvalue()


def read_comparisons(path: str | os.PathLike[str]) -> dict[Key, dict[str, Comparison]]:
    """What `comparisons_csv` wrote: per objective, reference -> comparison; "" is the best baseline.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is no comparisons.csv; the message names it.
    """
    rows = study_rows(path, (*_KEYS, *_SCORES, *_COUNTS), kind="comparisons.csv")
    found: dict[Key, dict[str, Comparison]] = {}
    for number, row in enumerate(rows, start=2):
        try:
            versus = Comparison(
                difference=float(row["difference"]),
                low=float(row["low"]),
                high=float(row["high"]),
                wins=int(row["wins"]),
                ties=int(row["ties"]),
                losses=int(row["losses"]),
                case_wins=float(row["case_wins"]),
            )
        except ValueError as error:
            raise ValueError(f"{path}: line {number}: {error}, expected numbers") from None
        key = (row["task"], row["protocol"], row["objective"], row["decoder"])
        found.setdefault(key, {})[row["reference"]] = versus
    return found
