"""Random numbers as a function of seed and epoch."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from ignite.engine import Engine
from monai.data import DataLoader, Dataset
from monai.transforms import Compose, RandShiftIntensityd

from monai_margincal.training import EpochSeedHandler


def draws(seed, epochs, num_workers=0, disturb=False, start=0):
    """What transforms, order and global streams give in every epoch, as one list per epoch."""
    dataset = Dataset(
        [{"x": torch.full((1, 2), float(i))} for i in range(4)], Compose([RandShiftIntensityd("x", 9.0, prob=1.0)])
    )
    loader = DataLoader(dataset, batch_size=2, shuffle=True, num_workers=num_workers)
    drawn: dict[int, list[float]] = {}

    def step(engine, batch):
        if disturb:
            torch.rand(5), np.random.rand(3), random.random()  # noqa: NPY002
        drawn.setdefault(engine.state.epoch, []).extend(batch["x"].flatten().tolist())

    engine = Engine(step)
    EpochSeedHandler(seed, dataset).attach(engine)
    if start:
        engine.load_state_dict({"epoch_length": 2, "max_epochs": epochs, "iteration": 2 * start})
    engine.run(loader, max_epochs=epochs)
    return drawn


@pytest.mark.parametrize("num_workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_an_epoch_does_not_depend_on_what_came_before(num_workers):
    whole = draws(1, 3, num_workers)
    late = draws(1, 3, num_workers, start=2)
    assert list(late) == [3]
    assert late[3] == whole[3]
    assert draws(1, 3, num_workers, disturb=True) == whole
    assert whole[1] != whole[2] != whole[3]
    assert draws(2, 3, num_workers)[3] != whole[3]


def test_a_negative_seed():
    with pytest.raises(ValueError, match="seed must not be negative, found -1"):
        EpochSeedHandler(-1)
