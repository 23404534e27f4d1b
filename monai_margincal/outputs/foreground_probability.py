"""The probability that a voxel is not background, for those who want to set a threshold of their own."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import torch
from monai.config import KeysCollection
from monai.data import MetaTensor
from monai.transforms import MapTransform


def foreground_probability(logits: torch.Tensor) -> torch.Tensor:
    """One minus the softmax of class 0: logits (K, X, Y, Z), K of 2 or more -> (1, X, Y, Z) in [0, 1], float32.

    Args:
        logits: one channel per class, class 0 is the background.

    Raises:
        ValueError: there are fewer than two channels.

    Example:
        >>> foreground_probability(torch.zeros(2, 1, 1, 1)).item()
        0.5
    """
    if logits.ndim < 2 or logits.shape[0] < 2:
        raise ValueError(f"expected logits of two or more classes, (K, ...), got the shape {tuple(logits.shape)}")
    logits = logits.float()
    # sigmoid of the log-odds: exact also where 1 - softmax would round to 0
    return torch.sigmoid(torch.logsumexp(logits[1:], dim=0, keepdim=True) - logits[:1])


class ForegroundProbabilityd(MapTransform):
    """Put the foreground probability of the logits of ``keys`` beside them, under ``probability_key``.

    Args:
        keys: key of the logits, (K, X, Y, Z).
        probability_key: key of the new (1, X, Y, Z), float32; a MetaTensor keeps its place in space.
        allow_missing_keys: skip a key that is absent.

    Raises:
        ValueError: on call: there are fewer than two channels.

    Example:
        >>> data = ForegroundProbabilityd("pred", "probability")({"pred": torch.zeros(2, 1, 1, 1)})
        >>> data["probability"].item()
        0.5
    """

    def __init__(
        self, keys: KeysCollection, probability_key: str = "probability", allow_missing_keys: bool = False
    ) -> None:
        super().__init__(keys, allow_missing_keys)
        self.probability_key = probability_key

    def __call__(self, data: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        """Return a shallow copy of ``data`` with the probability in it."""
        items = dict(data)
        for key in self.key_iterator(items):
            logits = items[key]
            probability = foreground_probability(logits.as_tensor() if isinstance(logits, MetaTensor) else logits)
            if isinstance(logits, MetaTensor):
                probability = MetaTensor(probability).copy_meta_from(logits)
            items[self.probability_key] = probability
        return items
