"""What offsets are and what they are worth, in lines for a log or a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..metrics import class_iou, class_precision, class_recall
from .class_offsets import ClassOffsets

__all__ = ["scores_line", "summary_lines"]


def summary_lines(offsets: ClassOffsets) -> list[str]:
    """Offsets, thresholds where there are two classes, and what they were fitted on.

    Args:
        offsets: of any origin; of a fit everything is shown that it noted.

    Example:
        >>> known = {"cases": 2, "voxels": 100, "score": "iou", "pooled": True, "folds": 2, "cross_fitted_gain": 0.0125,
        ...          "standard_error": 0.004, "confusion_before": [[90, 0], [5, 5]], "confusion_after": [[88, 2], [1, 9]]}
        >>> for line in summary_lines(ClassOffsets([0, 0.5], ["background", "lesion"], known)):
        ...     print(line)
        lesion: offset +0.5, threshold 0.378 on its probability
        fitted on 2 cases, 100 voxels, for the iou of all voxels together
        argmax: lesion iou 0.5000, recall 0.5000, precision 1.0000
        with offsets: lesion iou 0.7500, recall 0.9000, precision 0.8182
        cross-fitted gain of the foreground mean: +0.0125, standard error 0.0040 (2 folds)
    """
    lines = [
        f"{name}: offset {value:+g}"
        + (f", threshold {1 / (1 + math.exp(value)):.3f} on its probability" if len(offsets.offsets) == 2 else "")
        for name, value in zip(_names(offsets.class_names, len(offsets.offsets)), offsets.offsets, strict=True)
    ][1:]
    known = offsets.fitted_on
    if known is None:
        return [*lines, "not fitted, or on nothing known"]
    return lines + [text for text in _of_fit(offsets, known) if text]


def scores_line(title: str, confusion: Any, class_names: Sequence[str] | None) -> str:
    """IoU, recall and precision of the foreground classes of a confusion matrix (C, C), rows are true classes.

    Example:
        >>> scores_line("argmax", [[8, 1], [0, 1]], ["background", "lesion"])
        'argmax: lesion iou 0.5000, recall 1.0000, precision 0.5000'
    """
    matrix = np.asarray(confusion)
    words = {"iou": class_iou(matrix), "recall": class_recall(matrix), "precision": class_precision(matrix)}
    shown = [
        f"{name} " + ", ".join(f"{word} {values[k]:.4f}" for word, values in words.items())
        for k, name in enumerate(_names(class_names, len(matrix)))
        if k
    ]
    return f"{title}: {'; '.join(shown)}"


def _of_fit(offsets: ClassOffsets, known: Mapping[str, Any]) -> list[str]:
    voxels = f"{known['voxels']:,} voxels" if "voxels" in known else ""
    cases = f"{known['cases']} cases" if "cases" in known else ""
    cases += f" of {known['groups']} groups" if "groups" in known else ""
    place = "of all voxels together" if known.get("pooled", True) else "of each case, averaged"
    found = [", ".join(part for part in (cases, voxels) if part)]
    lines = [f"fitted on {found[0]}, for the {known.get('score', 'iou')} {place}" if found[0] else ""]
    if "one_in" in known:
        lines.append(f"chosen on one in {known['one_in']} of the voxels that offsets can move")
    if "note" in known:
        lines.append(f"note: {known['note']}")
    for title, key in (("argmax", "confusion_before"), ("with offsets", "confusion_after")):
        if key in known:
            lines.append(scores_line(title, known[key], offsets.class_names))
    if "cross_fitted_gain" in known:
        folds = f" ({known['folds']} folds)" if "folds" in known else ""
        if "unclear" in known:
            gain, error = known["unclear"]["gain"], known["unclear"]["standard_error"]
            lines.append(
                f"argmax is kept: a cross-fitted gain of {gain:+.4f}, standard error {error:.4f}, is not clear of chance{folds}"
            )
        else:
            error = f", standard error {known['standard_error']:.4f}" if known.get("standard_error") else ""
            lines.append(f"cross-fitted gain of the foreground mean: {known['cross_fitted_gain']:+.4f}{error}{folds}")
    if "weights" in known:
        lines.append(f"weights: {known['weights']}")
    return lines


def _names(names: Sequence[str] | None, classes: int) -> Sequence[str]:
    return names or [f"class {k}" for k in range(classes)]
