"""The probability that a voxel is not background, for those who want to set their own threshold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ..volume_file import VolumeFile


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
        raise ValueError(f"expected logits of two or more classes, (K, ...), found the shape {tuple(logits.shape)}")
    logits = logits.float()
    # sigmoid of the log-odds: exact also where 1 - softmax would round to 0
    return torch.sigmoid(torch.logsumexp(logits[1:], dim=0, keepdim=True) - logits[:1])


class Probability(VolumeFile):
    """``NAME_probability.nii.gz``: the probability that a voxel is not background, float32.

    Args:
        destination: where the results go.
        postfix: what is appended to the scan's name, in place of "probability".
    """

    kind = "probability"
    postfix = "probability"
    dtype = "float32"
    needs_logits = True

    def from_logits(self, logits: torch.Tensor) -> torch.Tensor:
        """Logits (K, X, Y, Z) -> (1, X, Y, Z)."""
        return foreground_probability(logits)

    def save(self, items: Mapping[Any, Any], key: str) -> None:
        """Write the map."""
        self.saver(items[self.kind])
