"""The parts of a compound, epoch by epoch."""

from __future__ import annotations

import pytest
import torch
from ignite.engine import Events
from monai.engines import SupervisedTrainer
from monai.losses import DiceLoss

from monai_margincal.losses import MarginCalibrationDiceLoss, MarginCalibrationLoss, MarginCalibrationTverskyLoss
from monai_margincal.training import LossPartsHandler, WarmUpHandler, WarmUpLoss

COUNTS = [70, 20, 10]


def trained(loss, epochs=2, handlers=()):
    """The trainer, its losses and its metrics, one list per epoch."""
    torch.manual_seed(0)
    network = torch.nn.Conv1d(1, 3, 1)
    data = [{"image": torch.randn(2, 1, 20), "label": torch.randint(0, 3, (2, 1, 20))} for _ in range(3)]
    trainer = SupervisedTrainer(
        "cpu", epochs, data, network, torch.optim.SGD(network.parameters(), 0.1), loss,
        train_handlers=[LossPartsHandler(), *handlers], decollate=False,
    )  # fmt: skip
    losses, metrics = [], []
    trainer.add_event_handler(
        Events.ITERATION_COMPLETED, lambda engine: losses.append(engine.state.output["loss"].item())
    )
    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda engine: metrics.append(dict(engine.state.metrics)))
    trainer.run()
    return losses, metrics


@pytest.mark.parametrize("kind", [MarginCalibrationDiceLoss, MarginCalibrationTverskyLoss])
def test_the_parts_add_up_to_the_mean_loss_of_the_epoch(kind):
    losses, metrics = trained(kind(0.5, 2.0, class_counts=COUNTS))
    assert len(metrics) == 2
    for epoch, found in enumerate(metrics):
        assert list(found) == ["train_margin", "train_overlap"]
        assert sum(found.values()) == pytest.approx(sum(losses[3 * epoch : 3 * epoch + 3]) / 3, rel=1e-6)
    assert metrics[0] != metrics[1]


def test_the_margin_part_is_that_of_the_margin_loss():
    """With a weight of 0 the compound is the overlap alone, and with the other at 0 it is the margin loss."""
    alone, _ = trained(MarginCalibrationLoss(class_counts=COUNTS), epochs=1)
    _, (found,) = trained(MarginCalibrationDiceLoss(1.0, 0.0, class_counts=COUNTS), epochs=1)
    assert found == {"train_margin": pytest.approx(sum(alone) / 3, rel=1e-5), "train_overlap": 0.0}


def test_a_warm_up_has_no_parts_and_leaves_none_behind():
    loss = WarmUpLoss(MarginCalibrationDiceLoss(class_counts=COUNTS), 1)
    _, metrics = trained(loss, handlers=[WarmUpHandler(loss)])
    assert list(metrics[0]) == []
    assert list(metrics[1]) == ["train_margin", "train_overlap"]


@pytest.mark.parametrize("loss", [DiceLoss(softmax=True, to_onehot_y=True), lambda input, target: input.sum()])
def test_other_losses_add_nothing(loss):
    _, metrics = trained(loss)
    assert metrics == [{}, {}]


def test_showing_the_parts_changes_neither_value_nor_gradient():
    seen = []
    loss = MarginCalibrationTverskyLoss(class_counts=COUNTS)
    logits = torch.randn(2, 3, 20, requires_grad=True)
    target = torch.randint(0, 3, (2, 1, 20))
    silent = loss(logits, target)
    (expected,) = torch.autograd.grad(silent, logits)
    loss.on_parts = lambda *parts: seen.append(parts)
    spoken = loss(logits, target)
    (found,) = torch.autograd.grad(spoken, logits)
    assert torch.equal(silent, spoken)
    assert torch.equal(expected, found)
    (parts,) = seen
    assert not any(part.requires_grad for part in parts)
    assert torch.equal(sum(parts), spoken.detach())
