"""What is trained: a loss and, if it has any, the controllers that change it between steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

__all__ = ["Objective", "SoftmaxFirstLoss", "WeightedSumLoss"]


class WeightedSumLoss(nn.Module):
    """Weighted sum of losses of the same logits and labels.

    Args:
        losses: modules that are called with (logits, target).
        weights: one number per loss; default: 1 each.

    Raises:
        ValueError: there is no loss, or the numbers of losses and weights differ.

    Example:
        >>> loss = WeightedSumLoss([nn.L1Loss(), nn.MSELoss()], weights=[1.0, 0.5])
        >>> loss(torch.tensor([2.0]), torch.tensor([0.0]))
        tensor(4.)
    """

    def __init__(self, losses: Sequence[nn.Module], weights: Sequence[float] | None = None) -> None:
        super().__init__()
        weights = [1.0] * len(losses) if weights is None else list(weights)
        if not losses or len(weights) != len(losses):
            raise ValueError(f"found {len(losses)} losses and {len(weights)} weights: expected as many, at least one")
        self.losses = nn.ModuleList(losses)
        self.weights = weights

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """The weighted sum."""
        parts = [weight * _call(loss, input, target) for loss, weight in zip(self.losses, self.weights, strict=True)]
        return torch.stack(parts).sum()


class SoftmaxFirstLoss(nn.Module):
    """A loss that wants probabilities, such as `monai.losses.AsymmetricUnifiedFocalLoss`, which clamps logits to [0, 1].

    Args:
        loss: called with (probabilities, target).

    Example:
        >>> loss = SoftmaxFirstLoss(nn.L1Loss())
        >>> loss(torch.zeros(1, 2, 1), torch.tensor([[[1.0], [0.0]]]))
        tensor(0.5000)
    """

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """The loss of the softmax of logits (B, C, *spatial)."""
        return _call(self.loss, torch.softmax(input, dim=1), target)


@dataclass
class Objective:
    """A loss in training.

    Args:
        loss: called with logits (B, C, *spatial) and class indices (B, 1, *spatial).
        controllers: objects with ``update(logits, target)`` that set the loss between steps.
    """

    loss: nn.Module
    controllers: Sequence[Any] = ()

    def __call__(self, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """The value of the loss."""
        return _call(self.loss, logits, target)

    def after_step(self, logits: torch.Tensor, target: torch.Tensor) -> None:
        """Show the controllers the step that was just done."""
        for controller in self.controllers:
            controller.update(logits.detach(), target)


def _call(loss: nn.Module, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """MONAI's losses want the labels with a channel, torch's cross-entropy wants them without."""
    if isinstance(loss, nn.CrossEntropyLoss):
        target = target[:, 0]
    return loss(logits, target)
