"""One training run: a fixed number of steps, a polynomial learning rate, the last weights. No checkpoint is selected.

Only the start of fine-tuning may instead be trained at a constant rate until the validation score stands still.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import nn

from .objectives import Objective
from .sample_stream import SampleStream

__all__ = ["History", "train"]

#: exponent of the polynomial schedule, as in the paper's protocol
_POLY_POWER = 0.9


@dataclass
class History:
    """What happened in a run.

    Attributes:
        steps: the steps at which the other lists were recorded; 0 is before the first step.
        training_loss: mean of the objective since the last point (at 0: None).
        validation_loss: the objective over the validation cases.
        validation_miou: foreground mean IoU of the validation cases by argmax.
        diverged: the loss became NaN or infinite, and training stopped there.
        seconds: time spent in training steps, without validation.
        peak_memory: in bytes, of the device's allocator on a GPU, else of the process.
        still: the validation score stood still, by the rule that training was to end by; None without a rule.
    """

    steps: list[int] = field(default_factory=list)
    training_loss: list[float | None] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)
    validation_miou: list[float] = field(default_factory=list)
    diverged: bool = False
    seconds: float = 0.0
    peak_memory: int = 0
    still: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON types."""
        return asdict(self)


def train(
    network: nn.Module,
    objective: Objective,
    stream: SampleStream,
    optimizer: torch.optim.Optimizer,
    steps: int,
    device: torch.device,
    validate: Callable[[nn.Module, Objective], tuple[float, float]] | None = None,
    validate_every: int | None = None,
    first_batch: int = 0,
    until: Callable[[Sequence[float]], bool] | None = None,
    on_step: Callable[[int], None] = lambda step: None,
) -> History:
    """Train in place.

    Args:
        network: on ``device``.
        objective: its loss on ``device``.
        stream: where batches come from.
        optimizer: of the network's parameters; its learning rates are scaled by (1 - step / steps)^0.9, or stay as they are
            where training ends by a rule: a rate that falls would itself bring the score to a standstill.
        steps: number of updates, or the most there may be.
        device: where to compute.
        validate: gives (loss, foreground mean IoU) of the validation cases; called in `eval` mode.
        validate_every: steps between two calls; default: only before the first and after the last step.
        first_batch: number of the first batch, so that fine-tuning continues where pre-training ended.
        until: training ends once this is true of the foreground mean IoU of all points so far.
        on_step: called with the number of steps done.

    Returns:
        the history.
    """
    history = History()
    power = _POLY_POWER if until is None else 0.0
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (1 - min(step, steps) / steps) ** power)
    on_gpu = device.type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats(device)
    # summed on the device: reading every value would wait for it
    running, since = torch.zeros((), device=device), 0

    def record(step: int) -> bool:
        nonlocal running, since
        mean = float(running) / since if since else None
        history.diverged = mean is not None and not math.isfinite(mean)
        if validate is not None:
            network.eval()
            with torch.no_grad():
                loss, miou = validate(network, objective)
            network.train()
            history.steps.append(step)
            history.training_loss.append(mean)
            history.validation_loss.append(loss)
            history.validation_miou.append(miou)
        running, since = torch.zeros((), device=device), 0
        if until is not None:
            history.still = until(history.validation_miou)
        return not history.diverged and not history.still

    network.train()
    record(0)
    every = validate_every or steps
    started = time.perf_counter()
    for step in range(steps):
        images, labels = stream.batch(first_batch + step)
        images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        logits = network(images)
        loss = objective(logits, labels)
        loss.backward()
        optimizer.step()
        schedule.step()
        objective.after_step(logits, labels)
        running += loss.detach()
        since += 1
        on_step(step + 1)
        if (step + 1) % every == 0 or step + 1 == steps:
            if on_gpu:
                torch.cuda.synchronize(device)
            history.seconds += time.perf_counter() - started
            if not record(step + 1):
                break
            started = time.perf_counter()
    history.peak_memory = torch.cuda.max_memory_allocated(device) if on_gpu else _peak_memory_of_process()
    return history


def _peak_memory_of_process() -> int:
    try:
        import resource
    except ImportError:  # Windows has no such record
        return 0
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
