"""One loss first, another later."""

from __future__ import annotations

import copy

import pytest
import torch
from ignite.engine import Engine
from torch import nn

from monai_margincal.training import WarmUpHandler, WarmUpLoss

PREDICTION, TARGET = torch.tensor([3.0]), torch.tensor([1.0])


@pytest.mark.parametrize("epochs", [0, 1, 3])
def test_the_epoch_chooses_the_loss(epochs):
    loss = WarmUpLoss(nn.L1Loss(), epochs, nn.MSELoss())
    values = []
    trainer = Engine(lambda engine, batch: values.append(loss(PREDICTION, TARGET).item()))
    WarmUpHandler(loss).attach(trainer)
    trainer.run([0, 0], max_epochs=4)
    assert values == [4.0] * 2 * epochs + [2.0] * 2 * (4 - epochs)


def test_the_epoch_is_part_of_the_state():
    loss = WarmUpLoss(nn.L1Loss(), 2, nn.MSELoss()).set_epoch(3)
    other = WarmUpLoss(nn.L1Loss(), 2, nn.MSELoss())
    assert other(PREDICTION, TARGET) == 4
    other.load_state_dict(copy.deepcopy(loss.state_dict()))
    assert other(PREDICTION, TARGET) == 2


def test_what_is_wrong_is_named():
    with pytest.raises(ValueError, match="epochs must not be negative, found -1"):
        WarmUpLoss(nn.L1Loss(), -1)
    with pytest.raises(TypeError, match="then: found 'focall', expected a loss"):
        WarmUpLoss("focall", 0)
    with pytest.raises(TypeError, match="loss must be a WarmUpLoss, found MSELoss"):
        WarmUpHandler(nn.MSELoss())


def test_the_first_loss_is_the_cross_entropy():
    logits, label = torch.randn(2, 3, 4, 5), torch.randint(0, 3, (2, 1, 4, 5))
    found = WarmUpLoss(nn.L1Loss(), 1)(logits, label.float())
    torch.testing.assert_close(found, nn.functional.cross_entropy(logits, label[:, 0]))
