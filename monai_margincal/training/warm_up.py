"""Start training with one loss and continue with another, within one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from ignite.engine import Events
from monai.losses import DiceCELoss
from torch import nn

if TYPE_CHECKING:
    from ignite.engine import Engine


class WarmUpLoss(nn.Module):
    """Give the value of `first` during the first epochs and of `then` from there on.

    The margin loss looks at the difference to the largest wrong logit, which says little while the logits are random; the
    paper's recipe starts from weights that were trained with cross-entropy. The epoch is a buffer, so that it is in the
    ``state_dict``; `WarmUpHandler` sets it from the trainer, which knows its epoch even after a resume.

    Args:
        then: loss of all epochs after the warm-up.
        epochs: number of epochs of the warm-up; 0 uses `then` from the start.
        first: loss of the epochs 1 ... `epochs`; by default the cross-entropy of class indices (B, 1, ...).

    Raises:
        TypeError: a loss is not a module.
        ValueError: `epochs` is negative.

    Source: cross-entropy before margin calibration, Li, Yu, Zhang, "Distribution-aware Margin Calibration for Medical Image
    Segmentation" (arXiv:2011.01462).

    Example:
        >>> loss = WarmUpLoss(nn.L1Loss(), epochs=1, first=nn.MSELoss())
        >>> prediction, target = torch.tensor([3.0]), torch.tensor([0.0])
        >>> loss(prediction, target), loss.set_epoch(2)(prediction, target)
        (tensor(9.), tensor(3.))
        >>> print(f"{WarmUpLoss(nn.L1Loss(), epochs=1)(torch.zeros(1, 2, 4), torch.zeros(1, 1, 4)):.4f}")
        0.6931
    """

    epoch: torch.Tensor

    def __init__(self, then: nn.Module, epochs: int, first: nn.Module | None = None) -> None:
        super().__init__()
        if epochs < 0:
            raise ValueError(f"epochs must not be negative, found {epochs}")
        if first is None:
            first = DiceCELoss(to_onehot_y=True, softmax=True, lambda_dice=0.0, batch=True)
        for name, loss in (("then", then), ("first", first)):
            if not isinstance(loss, nn.Module):
                raise TypeError(f"{name}: found {loss!r}, expected a loss (a torch.nn.Module)")
        self.first = first
        self.then = then
        self.epochs = int(epochs)
        # kept on the CPU, wherever `.to(device)` moves the rest: it is read in every step, which must not wait for the GPU
        self._epoch = 1
        self.register_buffer("epoch", torch.tensor(1, device="cpu"))

    def set_epoch(self, epoch: int) -> WarmUpLoss:
        """Say which epoch is running, counted from 1; returns the loss."""
        self._epoch = int(epoch)
        self.epoch.fill_(self._epoch)
        return self

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self._epoch = int(self.epoch)

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """The value of the epoch's loss.

        Args:
            input: logits, (B, C, ...).
            target: as both losses take it.
        """
        return (self.first if self._epoch <= self.epochs else self.then)(input, target)


class WarmUpHandler:
    """Tell a `WarmUpLoss` at the start of every epoch which epoch it is.

    Args:
        loss: the loss.

    Raises:
        TypeError: `loss` is not a `WarmUpLoss`.

    Example:
        >>> from ignite.engine import Engine
        >>> trainer = Engine(lambda engine, batch: None)
        >>> loss = WarmUpLoss(nn.L1Loss(), epochs=1)
        >>> WarmUpHandler(loss).attach(trainer)
        >>> state = trainer.run([0], max_epochs=3)
        >>> int(loss.epoch)
        3
    """

    def __init__(self, loss: WarmUpLoss) -> None:
        if not isinstance(loss, WarmUpLoss):
            raise TypeError(f"loss must be a WarmUpLoss, found {type(loss).__name__}")
        self.loss = loss

    def attach(self, engine: Engine) -> None:
        """Follow the epochs of a trainer."""
        engine.add_event_handler(Events.EPOCH_STARTED, self)

    def __call__(self, engine: Engine) -> None:
        """Pass on the engine's epoch."""
        if engine.state.epoch == self.loss.epochs + 1 and self.loss.epochs:
            engine.logger.info(
                f"the warm-up of {self.loss.epochs} epochs is over: {type(self.loss.then).__name__} from here on"
            )
        self.loss.set_epoch(engine.state.epoch)
