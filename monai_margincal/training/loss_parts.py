"""What the parts of a compound loss add to it, epoch by epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from ignite.engine import Events
from torch import nn

from ..processes.tensors import sum_over_ranks

if TYPE_CHECKING:
    from ignite.engine import Engine

#: what the parts are called in the metrics of a trainer
PARTS = ("train_margin", "train_overlap")


class LossPartsHandler:
    """Put the mean of both parts of a compound loss into the metrics of a trainer at the end of every epoch.

    ``engine.state.metrics`` gets ``train_margin`` and ``train_overlap``, what the margin part and the overlap part have added to
    the loss of a step on average over the epoch and over all processes, so that both add up to the mean loss. `StatsHandler` and
    `TensorBoardStatsHandler` show them without being told, if they are attached later. The parts are scalars that the loss has
    computed anyway; they are added up where they lie, and read once per epoch. A loss without such parts adds nothing, nor does
    one that is compiled, nor the epochs of a warm-up with another loss.

    Example:
        >>> from monai.engines import SupervisedTrainer
        >>> from monai_margincal.losses import MarginCalibrationDiceLoss
        >>> network = nn.Conv1d(1, 2, 1)
        >>> data = [{"image": torch.ones(1, 1, 4), "label": torch.tensor([[[0, 1, 1, 0]]])}]
        >>> trainer = SupervisedTrainer(
        ...     "cpu", 1, data, network, torch.optim.SGD(network.parameters(), 0.1), MarginCalibrationDiceLoss(margins=0.0),
        ...     train_handlers=[LossPartsHandler()])
        >>> trainer.run()
        >>> list(trainer.state.metrics)
        ['train_margin', 'train_overlap']
    """

    def __init__(self) -> None:
        self._total: torch.Tensor | None = None

    def attach(self, engine: Engine) -> None:
        """Look at the trainer's loss from its next start on."""
        engine.add_event_handler(Events.STARTED, self._listen)
        engine.add_event_handler(Events.EPOCH_STARTED, self._forget)
        engine.add_event_handler(Events.EPOCH_COMPLETED, self._write)

    def _listen(self, engine: Engine) -> None:
        loss = getattr(engine, "loss_function", None)
        for module in loss.modules() if isinstance(loss, nn.Module) else ():
            if hasattr(module, "on_parts") and not isinstance(module, torch.jit.ScriptModule):
                module.on_parts = self._add  # type: ignore[assignment]

    def _forget(self, engine: Engine) -> None:
        self._total = None

    def _add(self, margin: torch.Tensor, overlap: torch.Tensor) -> None:
        step = torch.stack([margin, overlap, torch.ones_like(margin)]).to(torch.float64)
        self._total = step if self._total is None else self._total + step

    def _write(self, engine: Engine) -> None:
        # every process has had the same loss in this epoch
        total, self._total = self._total, None
        for name in PARTS:
            engine.state.metrics.pop(name, None)
        if total is None:
            return
        *sums, steps = sum_over_ranks(total).tolist()
        engine.state.metrics.update({name: part / steps for name, part in zip(PARTS, sums, strict=True)})
