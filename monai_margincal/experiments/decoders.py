"""From logits to class indices: argmax, and decoders that may gain something over it without training.

A decoder has ``fit(logits, labels)``, called once per trained network with validation cases, ``__call__(logits)`` for one case,
and ``state()``, which gives what it has learnt in JSON types. Logits of a case have shape (C, *spatial), labels (*spatial).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ..extras import require
from ..ops import largest_class
from .scores import foreground_iou

__all__ = ["ArgmaxDecoder", "IoUThresholdDecoder", "RankSEGDecoder"]


class ArgmaxDecoder:
    """The class with the largest logit.

    Example:
        >>> ArgmaxDecoder()(torch.tensor([[0.0, 2.0], [1.0, 1.0]]))
        tensor([1, 0])
    """

    def fit(self, logits: Sequence[torch.Tensor], labels: Sequence[torch.Tensor]) -> None:
        """Nothing to learn."""

    def __call__(self, logits: torch.Tensor) -> torch.Tensor:
        """Class indices (*spatial), int64."""
        return largest_class(logits, dim=0)

    def state(self) -> dict[str, Any]:
        """Nothing was learnt."""
        return {}


class IoUThresholdDecoder:
    """Argmax after one offset per class, chosen so that the whole-set foreground mean IoU of the validation cases is largest.

    For two classes an offset b of class 1 is the decision threshold 1 / (1 + e^b) on its softmax probability: the threshold that
    is best for the IoU. For more classes the offsets are chosen one class at a time, in turn. One pass over the voxels scores
    all offsets of a class at once, exactly: voxels are sorted by the smallest offset that gives them to that class.
    Offset 0 is kept unless another one is better.

    Args:
        largest: offsets tried lie between -largest and largest, in natural-logarithm units of the logits.
        step: distance between offsets.
        rounds: how often each class is visited.

    Raises:
        ValueError: an argument is not positive.

    Example:
        >>> decoder = IoUThresholdDecoder()
        >>> logits = torch.tensor([[1.0, 1.0, 1.0, 1.0], [0.0, 0.7, 0.8, -3.0]])  # argmax never says class 1
        >>> decoder.fit([logits], [torch.tensor([0, 1, 1, 0])])
        >>> decoder(logits)
        tensor([0, 1, 1, 0])
    """

    def __init__(self, largest: float = 4.0, step: float = 0.1, rounds: int = 2) -> None:
        if largest <= 0 or step <= 0 or rounds < 1:
            raise ValueError(f"largest, step and rounds must be positive, found {largest!r}, {step!r} and {rounds!r}")
        half = round(largest / step)
        self.grid = np.arange(-half, half + 1) * step
        self.rounds = rounds
        self.offsets: torch.Tensor | None = None

    def fit(self, logits: Sequence[torch.Tensor], labels: Sequence[torch.Tensor]) -> None:
        """Choose the offsets.

        Raises:
            ValueError: there is no validation case.
        """
        if not logits:
            raise ValueError("there are no validation cases: expected at least one to choose the offsets on")
        classes = logits[0].shape[0]
        scores = torch.cat([case.reshape(classes, -1) for case in logits], dim=1).float()
        truth = torch.cat([case.reshape(-1) for case in labels]).long().to(scores.device)
        offsets = torch.zeros(classes, device=scores.device)
        for _ in range(self.rounds if classes > 2 else 1):
            for k in range(1, classes):
                offsets[k] = self._best_offset(scores, truth, offsets, k)
        self.offsets = offsets

    def _best_offset(self, scores: torch.Tensor, truth: torch.Tensor, offsets: torch.Tensor, k: int) -> float:
        classes, bins = scores.shape[0], len(self.grid)
        shifted = scores + offsets[:, None]
        shifted[k] = -torch.inf
        rival, rival_class = shifted.max(dim=0)
        # the voxel goes to k for every offset above `needed`
        needed = rival - scores[k]
        first = torch.searchsorted(
            torch.as_tensor(self.grid, dtype=needed.dtype, device=needed.device), needed, right=True
        )
        cell = (truth * classes + rival_class) * (bins + 1) + first
        counts = torch.bincount(cell, minlength=classes * classes * (bins + 1)).cpu().numpy()
        moved = counts.reshape(classes, classes, bins + 1)[..., :bins].cumsum(-1)
        total = counts.reshape(classes, classes, bins + 1).sum(-1, keepdims=True)
        confusion = total - moved  # left with the rival
        confusion[:, k] = moved.sum(1)  # the rival is never k
        quality = foreground_iou(np.moveaxis(confusion, -1, 0))
        best = quality.max()
        # among equals, the one nearest to the previous offset, which is 0 at first
        candidates = np.flatnonzero(quality >= best - 1e-12)
        return float(self.grid[candidates[np.abs(self.grid[candidates] - float(offsets[k])).argmin()]])

    def __call__(self, logits: torch.Tensor) -> torch.Tensor:
        """Class indices (*spatial), int64.

        Raises:
            RuntimeError: `fit` was not called.
        """
        if self.offsets is None:
            raise RuntimeError("IoUThresholdDecoder has no offsets yet: call fit(logits, labels) first")
        return largest_class(logits + self.offsets.to(logits).reshape(-1, *[1] * (logits.ndim - 1)), dim=0)

    def state(self) -> dict[str, Any]:
        """The offsets per class."""
        return {"offsets": None if self.offsets is None else [round(value, 6) for value in self.offsets.tolist()]}


class RankSEGDecoder:
    """RankSEG on the softmax probabilities of one case: the segmentation whose expected IoU of that case is (nearly) largest.

    Needs the package ``rankseg`` (BSD-3-Clause). It trusts the probabilities and optimises every case by itself, not the whole
    set. Losses other than cross-entropy do not train calibrated probabilities, so a temperature is chosen first: the one with
    the smallest cross-entropy on the validation cases.

    Args:
        metric: "IoU" or "dice".

    Raises:
        ImportError: ``rankseg`` is not installed.
        ValueError: unknown metric.

    Source: Dai, Li, "RankSEG: A Consistent Ranking-based Framework for Segmentation", Journal of Machine Learning Research
    24(224):1-50, 2023.
    """

    #: from a third to three, in steps of about 12 %
    _TEMPERATURES = np.geomspace(1 / 3, 3, 21)

    def __init__(self, metric: str = "IoU") -> None:
        if metric not in ("IoU", "dice"):
            raise ValueError(f"metric must be 'IoU' or 'dice', found {metric!r}")
        rankseg = require("rankseg", extra="experiments", purpose="the decoder RankSEG")
        self._solver = rankseg.RankSEG(metric=metric, output_mode="multiclass", solver="RMA")
        self.temperature = 1.0

    def fit(self, logits: Sequence[torch.Tensor], labels: Sequence[torch.Tensor]) -> None:
        """Choose the temperature.

        Raises:
            ValueError: there is no validation case.
        """
        if not logits:
            raise ValueError("there are no validation cases: expected at least one to choose the temperature on")
        classes = logits[0].shape[0]
        scores = torch.cat([case.reshape(classes, -1) for case in logits], dim=1).float()
        truth = torch.cat([case.reshape(-1) for case in labels]).long().to(scores.device)
        right = scores.gather(0, truth[None])[0]
        entropies = [float((torch.logsumexp(scores / t, 0) - right / t).mean()) for t in self._TEMPERATURES]
        self.temperature = float(self._TEMPERATURES[int(np.argmin(entropies))])

    def __call__(self, logits: torch.Tensor) -> torch.Tensor:
        """Class indices (*spatial), int64."""
        return self._solver.predict(torch.softmax(logits.float() / self.temperature, dim=0)[None])[0]

    def state(self) -> dict[str, Any]:
        """The temperature."""
        return {"temperature": round(self.temperature, 6)}
