"""Losses and their controllers under another default device: "meta" stands for all of them where there is no GPU."""

from __future__ import annotations

import copy

import pytest
import torch

from monai_margincal import (
    BoundWeights,
    ClassCounts,
    IoUCalibratedMargins,
    LovaszSoftmaxLoss,
    MarginCalibrationDiceLoss,
    MarginCalibrationLoss,
    MarginCalibrationTverskyLoss,
)
from monai_margincal.losses import RunningConfusion

MAKERS = {
    "counts": lambda: MarginCalibrationLoss(class_counts=ClassCounts([900, 90, 10]), ignore_index=255),
    "margins": lambda: MarginCalibrationLoss(
        margins=([0.1, 0.2, 0.3], 0.0), positive_weight=[1, 2, 3], ignore_index=255
    ),
    "shared": lambda: MarginCalibrationLoss(margins=0.5, reduction="none", ignore_index=255),
    "global_mean": lambda: MarginCalibrationLoss(margins=0.5, global_mean=True, ignore_index=255),
    "kernels": lambda: MarginCalibrationLoss(margins=0.5, backend="triton", ignore_index=255),
    "dice": lambda: MarginCalibrationDiceLoss(class_counts=[900, 90, 10], weight=[1.0, 2.0, 3.0], ignore_index=255),
    "dice, one weight": lambda: MarginCalibrationDiceLoss(class_counts=[900, 90, 10], weight=2.0, ignore_index=255),
    "tversky": lambda: MarginCalibrationTverskyLoss(margins=0.5, batch=True, ignore_index=255),
    "lovasz": lambda: LovaszSoftmaxLoss(per_image=True, ignore_index=255),
    "lovasz, all": lambda: LovaszSoftmaxLoss(classes="all", ignore_index=255),
}
makers = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
WITH_MARGINS = {name: make for name, make in MAKERS.items() if "lovasz" not in name}
with_margins = pytest.mark.parametrize("make", WITH_MARGINS.values(), ids=WITH_MARGINS.keys())


def problem():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 3, 4, 5, generator=generator, device="cpu").requires_grad_()
    labels = torch.randint(0, 2, (2, 1, 4, 5), generator=generator, device="cpu")
    labels[0, 0, 0] = 255
    return logits, labels


def value_and_gradient(loss, logits, target):
    value = loss(logits, target)
    total = value.sum()
    return value.detach(), torch.autograd.grad(total, logits)[0]


@makers
@pytest.mark.parametrize("form", ["index", "one value per class"])
def test_tensors_of_another_device(make, form):
    """The loss made before or within, used within or after: what it gives without a default device."""
    logits, target = problem()
    if form != "index":
        if make is MAKERS["kernels"]:
            pytest.skip("the kernels take class indices")
        target = torch.nn.functional.one_hot(target[:, 0].clamp(0, 1), 3).movedim(-1, 1).float()
    loss = make()
    expected = value_and_gradient(loss, logits, target)
    with torch.device("meta"):
        torch.testing.assert_close(value_and_gradient(loss, logits, target), expected)
        made = make()
        torch.testing.assert_close(value_and_gradient(made, logits, target), expected)
        repr(made)
    torch.testing.assert_close(value_and_gradient(made, logits, target), expected)
    torch.testing.assert_close(value_and_gradient(copy.deepcopy(made), logits, target), expected)


@makers
def test_everything_on_meta(make):
    if make in (MAKERS["lovasz"], MAKERS["lovasz, all"]):
        pytest.skip("sorts by value")
    with torch.device("meta"):
        loss, logits = make(), torch.randn(2, 3, 4, 5, requires_grad=True)
        value, slopes = value_and_gradient(loss, logits, torch.randint(0, 3, (2, 1, 4, 5)))
    assert value.is_meta
    assert value.shape == ((2, 1, 4, 5) if make is MAKERS["shared"] else ())
    assert slopes.is_meta
    assert slopes.shape == logits.shape


@with_margins
def test_margins_survive_a_deferred_initialisation(make):
    """``to_empty`` leaves parameters to a checkpoint; margins are settings and stay."""
    logits, labels = problem()
    expected = value_and_gradient(make(), logits, labels)
    with torch.device("meta"):
        network = torch.nn.Sequential(torch.nn.Linear(2, 2))
        network.loss = make()
    network.to_empty(device="cpu")
    torch.testing.assert_close(value_and_gradient(network.loss, logits, labels), expected)
    moved = make().to("meta").to_empty(device="cpu")
    torch.testing.assert_close(value_and_gradient(moved, logits, labels), expected)


def test_changed_margins_survive_meta():
    logits, labels = problem()
    loss = MarginCalibrationLoss(class_counts=[900, 90, 10], ignore_index=255)
    loss.margin_negative.mul_(3)
    expected = loss(logits, labels)
    torch.testing.assert_close(loss.to("meta").to_empty(device="cpu")(logits, labels), expected)
    torch.testing.assert_close(loss.double()(logits, labels), expected)


@pytest.mark.parametrize("controller", [IoUCalibratedMargins, BoundWeights])
def test_controllers(controller):
    logits, labels = problem()

    def run():
        loss = MarginCalibrationLoss(class_counts=[900, 90, 10], ignore_index=255)
        watching = controller(loss, warmup=0)
        watching.update(logits, labels)
        watching.update(logits, labels)
        return [*loss.state_dict().values(), *watching.state_dict().values()]

    expected = run()
    with torch.device("meta"):
        torch.testing.assert_close(run(), expected)


def test_running_confusion():
    logits, labels = problem()
    expected = RunningConfusion(3, ignore_index=255)
    expected.update(logits, labels)
    with torch.device("meta"):
        running = RunningConfusion(3, ignore_index=255)
        running.update(logits, labels)
        for name in ("matrix", "iou", "union", "frequencies"):
            torch.testing.assert_close(getattr(running, name), getattr(expected, name))


def test_set_for_the_whole_process():
    logits, labels = problem()
    expected = value_and_gradient(MAKERS["dice"](), logits, labels)
    torch.set_default_device("meta")
    try:
        torch.testing.assert_close(value_and_gradient(MAKERS["dice"](), logits, labels), expected)
    finally:
        torch.set_default_device(None)
