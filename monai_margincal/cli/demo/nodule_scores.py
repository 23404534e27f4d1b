"""IoU of saved masks: of all voxels together and of each nodule, with intervals over patients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ...metrics import class_iou, confusion_matrix
from .patients import CLASS_NAMES

_DRAWS = 10_000


@dataclass(frozen=True)
class Scores:
    """What the masks are worth.

    Attributes:
        cases: IoU of each nodule, in [0, 1].
        pooled: IoU of one confusion matrix over the voxels of all nodules, and its 95 % bootstrap interval over patients.
        mean: mean of the nodules' IoU, and its interval.
    """

    cases: dict[str, float]
    pooled: tuple[float, float, float]
    mean: tuple[float, float, float]

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"pooled": list(self.pooled), "mean": list(self.mean), "cases": self.cases}

    def best_middle_worst(self) -> dict[str, str]:
        """The cases to show: the best, the three around the median, the worst; with fewer than five all of them."""
        order = sorted(self.cases, key=lambda case: (-self.cases[case], case))
        middle = len(order) // 2
        shown = dict.fromkeys(order[max(middle - 1, 0) : middle + 2], "middle")
        return {
            order[0]: "best",
            **{case: what for case, what in shown.items() if case != order[0]},
            order[-1]: "worst",
        }


def score(files: Mapping[str, tuple[str | Path, str | Path]]) -> Scores:
    """Compare masks with the truth, both read from disk.

    Args:
        files: case -> (mask, true mask), NIfTI on the same grid, class 0 or 1; one case per patient, each with a nodule.

    Returns:
        the scores of class 1; the intervals always come from the same draws.
    """
    confusions = np.stack([_confusion(mask, truth) for mask, truth in files.values()])
    each = _iou(confusions)
    drawn = np.random.default_rng(0).integers(len(confusions), size=(_DRAWS, len(confusions)))
    # patients, not voxels, are drawn again: the voxels of one nodule are right or wrong together
    pooled, mean = _iou(confusions[drawn].sum(1)), each[drawn].mean(1)
    return Scores(
        cases={case: float(value) for case, value in zip(files, each, strict=True)},
        pooled=_with_interval(_iou(confusions.sum(0)), pooled),
        mean=_with_interval(each.mean(), mean),
    )


def _iou(confusions: np.ndarray) -> np.ndarray:
    return class_iou(confusions, absent=1.0)[..., 1]


def _with_interval(value: Any, drawn: np.ndarray) -> tuple[float, float, float]:
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(value), float(low), float(high)


def _confusion(mask: str | Path, truth: str | Path) -> np.ndarray:
    import nibabel

    predicted, true = (
        torch.from_numpy(np.asanyarray(nibabel.load(path).dataobj).astype(np.uint8))[None]  # type: ignore[attr-defined]
        for path in (mask, truth)
    )
    return confusion_matrix(predicted, true, num_classes=len(CLASS_NAMES)).numpy()
