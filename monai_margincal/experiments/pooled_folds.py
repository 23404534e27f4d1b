"""The folds of one objective and seed as one run over all cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["pooled_record"]


def pooled_record(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The records of all folds as one: every case was in the test of one fold.

    Test cases follow each other fold by fold, counts are summed, validation curves are averaged over the points that all folds
    have, times are summed, of memory the largest counts, and one diverged fold makes a diverged run. ``fold_sizes`` of the
    evaluation tells how many test cases each fold has.

    Args:
        records: of all folds of a task, objective and seed; a single one is given back as it is.
    """
    if len(records) == 1:
        return records[0]
    evaluations = [record["evaluation"] for record in records]
    decoders = evaluations[0]["confusion"]
    return {
        **records[0],
        "training_counts": np.sum([record["training_counts"] for record in records], axis=0).tolist(),
        "history": _pooled_history([record["history"] for record in records]),
        "evaluation": {
            "cases": [case for evaluation in evaluations for case in evaluation["cases"]],
            "fold_sizes": [len(evaluation["cases"]) for evaluation in evaluations],
            "confusion": {name: [m for one in evaluations for m in one["confusion"][name]] for name in decoders},
            "validation_confusion": {
                name: np.sum([one["validation_confusion"][name] for one in evaluations], axis=0).tolist()
                for name in decoders
            },
            "margin_histogram": np.sum([one["margin_histogram"] for one in evaluations], axis=0).tolist(),
        },
    }


def _pooled_history(histories: Sequence[dict[str, Any]]) -> dict[str, Any]:
    points = min(len(history["steps"]) for history in histories)

    def mean(name: str) -> list[float | None]:
        values = np.array([history[name][:points] for history in histories], dtype=float)
        return [None if np.isnan(value) else float(value) for value in values.mean(0)]

    return {
        "steps": histories[0]["steps"][:points],
        **{name: mean(name) for name in ("training_loss", "validation_loss", "validation_miou")},
        "diverged": any(history["diverged"] for history in histories),
        "seconds": sum(history["seconds"] for history in histories),
        "peak_memory": max(history["peak_memory"] for history in histories),
    }
