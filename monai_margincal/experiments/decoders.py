"""From logits to class indices: argmax, and decoders that may gain something over it without training.

A decoder has ``fit(logits, labels, groups)``, called once per trained network with validation cases, ``__call__(logits)`` for one
case, and ``state()``, which gives what it has learnt in JSON types. Logits of a case have shape (C, *spatial), labels (*spatial);
groups are one name per case where the data list says which cases belong together, or None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ..decisions import ClassOffsets, fit_class_offsets
from ..extras import require
from ..ops import largest_class

__all__ = ["ArgmaxDecoder", "ClassOffsetDecoder", "RankSEGDecoder"]


class ArgmaxDecoder:
    """The class with the largest logit.

    Example:
        >>> ArgmaxDecoder()(torch.tensor([[0.0, 2.0], [1.0, 1.0]]))
        tensor([1, 0])
    """

    def fit(
        self, logits: Sequence[torch.Tensor], labels: Sequence[torch.Tensor], groups: Sequence[str] | None = None
    ) -> None:
        """Nothing to learn."""

    def __call__(self, logits: torch.Tensor) -> torch.Tensor:
        """Class indices (*spatial), int64."""
        return largest_class(logits, dim=0)

    def state(self) -> dict[str, Any]:
        """Nothing was learnt."""
        return {}


class ClassOffsetDecoder:
    """The product's own decision: `fit_class_offsets` for the whole-set IoU, its gain cross-fitted over the validation cases.

    An offset whose gain on cases that it was not chosen on is not clear of chance stays 0, so with a single validation case, on
    which nothing can be cross-fitted, this is argmax.

    Args:
        folds: parts of the validation cases for the cross-fit; with fewer cases every case is a part.

    Raises:
        ValueError: fewer than two folds.

    Example:
        >>> decoder = ClassOffsetDecoder()
        >>> logits = torch.tensor([[1.0, 1.0, 1.0, 1.0], [0.0, 0.7, 0.8, -3.0]])  # argmax never says class 1
        >>> decoder.fit([logits, logits + 1], [torch.tensor([0, 1, 1, 0])] * 2)
        >>> decoder(logits)
        tensor([0, 1, 1, 0])
        >>> decoder.state()
        {'offsets': [0.0, 0.4], 'cross_fitted_gain': 1.0, 'standard_error': 0.0}
    """

    def __init__(self, folds: int = 5) -> None:
        if folds < 2:
            raise ValueError(f"folds: found {folds!r}, expected 2 or more")
        self.folds = folds
        self.offsets: ClassOffsets | None = None

    def fit(
        self, logits: Sequence[torch.Tensor], labels: Sequence[torch.Tensor], groups: Sequence[str] | None = None
    ) -> None:
        """Choose the offsets.

        Raises:
            ValueError: there is no validation case.
        """
        if not logits:
            raise ValueError("there are no validation cases: expected at least one to choose the offsets on")
        classes = logits[0].shape[0]
        if len(logits) == 1:
            # fit_class_offsets would say the same, with a warning for every run
            self.offsets = ClassOffsets([0.0] * classes)
        else:
            cases = zip(logits, labels, strict=True)
            self.offsets = fit_class_offsets(cases, classes, folds=self.folds, progress=False, groups=groups)

    def __call__(self, logits: torch.Tensor) -> torch.Tensor:
        """Class indices (*spatial), int64.

        Raises:
            RuntimeError: `fit` was not called.
        """
        if self.offsets is None:
            raise RuntimeError("ClassOffsetDecoder has no offsets yet: call fit(logits, labels) first")
        return self.offsets(logits, dim=0)

    def state(self) -> dict[str, Any]:
        """The offsets per class, what they gained on validation cases that they were not chosen on, and its error.

        Where a gain was not clear of chance, that gain and its error stand there under ``unclear``.
        """
        if self.offsets is None:
            return {"offsets": None, "cross_fitted_gain": None, "standard_error": None}
        known = self.offsets.fitted_on or {}
        return {
            "offsets": [round(value, 6) for value in self.offsets.offsets],
            **{name: round(known.get(name, 0.0), 6) for name in ("cross_fitted_gain", "standard_error")},
            **({"unclear": known["unclear"]} if "unclear" in known else {}),
        }


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

    def fit(
        self, logits: Sequence[torch.Tensor], labels: Sequence[torch.Tensor], groups: Sequence[str] | None = None
    ) -> None:
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
