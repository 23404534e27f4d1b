"""Random numbers as a function of seed, epoch and rank, so that a resumed run continues as if it had never stopped."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from ignite.engine import Events
from monai.data import set_rnd

from ..processes import own_rank

if TYPE_CHECKING:
    from ignite.engine import Engine


class EpochSeedHandler:
    """Seed PyTorch, NumPy, Python and the transforms of a data set at the start of every epoch.

    The state of a random stream depends on everything drawn before, and that of a worker process is lost when the process ends,
    so it cannot be put into a checkpoint. A seed per epoch can be computed again: epoch 7 of a run that was resumed after epoch
    6 draws what it would have drawn without the stop. Data loaders must start new workers in every epoch
    (``persistent_workers=False``), since a worker is seeded when it starts.

    Args:
        seed: the run's seed, not negative.
        dataset: the training data; its transforms are seeded for loaders without workers.

    Raises:
        ValueError: `seed` is negative.

    Example:
        >>> from ignite.engine import Engine
        >>> drawn = []
        >>> trainer = Engine(lambda engine, batch: drawn.append(torch.rand(()).item()))
        >>> EpochSeedHandler(seed=3).attach(trainer)
        >>> state = trainer.run([0], max_epochs=2)
        >>> state = Engine.run(trainer, [0], max_epochs=2)
        >>> drawn[:2] == drawn[2:], drawn[0] == drawn[1]
        (True, False)
    """

    def __init__(self, seed: int, dataset: Any = None) -> None:
        if seed < 0:
            raise ValueError(f"seed must not be negative, found {seed}")
        self.seed = int(seed)
        self.dataset = dataset

    def attach(self, engine: Engine) -> None:
        """Seed before the engine asks for the epoch's first batch."""
        engine.add_event_handler(Events.EPOCH_STARTED, self)

    def __call__(self, engine: Engine) -> None:
        """Set the seed of the engine's epoch, a different one on every rank."""
        # a hash, so that seed 1 in epoch 2 has nothing in common with seed 2 in epoch 1
        drawn = np.random.SeedSequence([self.seed, engine.state.epoch, own_rank()]).generate_state(1)
        seed = int(drawn[0])
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - the global stream is what third-party transforms draw from
        torch.manual_seed(seed)
        if self.dataset is not None:
            set_rnd(self.dataset, seed)
