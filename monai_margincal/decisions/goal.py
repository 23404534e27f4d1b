"""The score that offsets are to make largest, of one confusion matrix per case."""

from __future__ import annotations

import warnings

import numpy as np

from ..metrics import class_iou

__all__ = ["Goal"]


class Goal:
    """The score that is to become largest.

    Args:
        score: "iou" or "dice".
        pooled: of one matrix over all cases, a class that occurs nowhere counting as 1; False: the mean over the cases, classes
            that a case neither has nor is given left out.
    """

    def __init__(self, score: str, pooled: bool) -> None:
        self.score = score
        self.pooled = pooled

    def __call__(self, confusions: np.ndarray) -> np.ndarray:
        """Foreground mean (...) of confusion matrices per case (N, ..., C, C)."""
        if self.pooled:
            return self._of(confusions.sum(0), absent=1.0)[..., 1:].mean(-1)
        per_class = self._of(confusions, absent=np.nan)[..., 1:]
        with warnings.catch_warnings():
            # a case without foreground in truth and prediction has no score
            warnings.simplefilter("ignore", RuntimeWarning)
            return np.nan_to_num(np.nanmean(np.nanmean(per_class, axis=-1), axis=0), nan=1.0)

    def per_class(self, confusions: np.ndarray) -> list[float | None]:
        """Score per class (C,) over the cases (N, C, C); None for a class that has none."""
        if self.pooled:
            values = self._of(confusions.sum(0), absent=np.nan)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                values = np.nanmean(self._of(confusions, absent=np.nan), axis=0)
        return [None if np.isnan(value) else float(value) for value in values]

    def _of(self, confusions: np.ndarray, absent: float) -> np.ndarray:
        iou = class_iou(confusions, absent=absent)
        return iou if self.score == "iou" else 2 * iou / (1 + iou)
