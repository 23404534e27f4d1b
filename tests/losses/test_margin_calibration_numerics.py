"""NaN, infinity, half precision and hard training: what users reported of other losses, and what this one must do."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from losses.problems import gradient, logits_and_labels

import monai_margincal
from monai_margincal import ClassCounts, MarginCalibrationLoss


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        (torch.float16, 6e4),
        (torch.float32, 1e30),
        (torch.bfloat16, 1e30),
        (torch.float64, 1e200),
        (torch.float32, 3e38),
    ],
)
def test_huge_logits(dtype, size):
    """pytorch/pytorch/issues/40497: the log of a value that became 0."""
    signs = torch.tensor([[1, -1, 0], [-1, 1, -1], [1, 1, 1], [-1, -1, 1]], dtype=torch.float64).T[None]  # (1, 3, 4)
    for labels in (torch.tensor([[0, 1, 2, 0]]), torch.tensor([[1, 0, 0, 2]])):
        logits = (signs * size).to(dtype).requires_grad_()
        value = MarginCalibrationLoss(class_counts=[90, 9, 1])(logits, labels)
        value.backward()
        assert torch.isfinite(value)
        assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("form", ["index", "soft"])
def test_infinite_logits_count_as_very_large(dtype, form):
    for infinite in ([1], [0, 1], [0, 1, 2]):
        for sign in (1, -1):
            logits = torch.zeros(1, 3, 2, dtype=dtype)
            logits[:, infinite] = sign * torch.inf
            logits.requires_grad_()
            target = torch.tensor([[1, 2]])
            if form == "soft":
                target = torch.nn.functional.one_hot(target, 3).movedim(-1, 1)
            value = MarginCalibrationLoss(class_counts=[90, 9, 1])(logits, target)
            value.backward()
            assert torch.isfinite(value)
            assert torch.isfinite(logits.grad).all()
    logits = torch.tensor([[[torch.inf], [0.0], [-torch.inf]]], dtype=dtype)
    value = MarginCalibrationLoss(margins=0.0)(logits, torch.tensor([[0]]))
    assert value.item() == 0  # the infinite logit is the true class's


def test_nan_in_a_valid_voxel_is_not_hidden():
    logits, labels = logits_and_labels(1, 3, 4)
    with torch.no_grad():
        logits[0, 0, 0] = torch.nan
    assert MarginCalibrationLoss(class_counts=[9, 5, 3])(logits, labels).isnan()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype):
    """ultralytics/ultralytics/pull/24554."""
    logits, labels = logits_and_labels(2, 3, 8, 8)
    half = logits.detach().to(dtype).requires_grad_()
    loss = MarginCalibrationLoss(class_counts=[900, 90, 10])
    assert loss(half, labels).dtype == torch.float32
    torch.testing.assert_close(loss(half, labels), loss(half.float(), labels), rtol=0, atol=0)
    assert gradient(loss, half, labels).dtype == dtype


def test_under_autocast():
    network = torch.nn.Conv2d(1, 3, 3, padding=1)
    image, labels = torch.randn(2, 1, 8, 8), torch.randint(0, 3, (2, 1, 8, 8))
    loss = MarginCalibrationLoss(class_counts=[900, 90, 10])
    with torch.autocast("cpu", torch.bfloat16):
        logits = network(image)
        assert logits.dtype == torch.bfloat16
        value = loss(logits, labels)
    assert value.dtype == torch.float32
    value.backward()
    assert torch.isfinite(network.weight.grad).all()
    torch.testing.assert_close(value, loss(logits.float(), labels))


def test_scaled_half_gradient_is_rounded_once():
    """A GradScaler's factor is applied before the gradient becomes float16: over 2^20 voxels it would be 0 otherwise."""
    logits, labels = logits_and_labels(1, 2, 64, 64, 64)
    half = logits.detach().half().requires_grad_()
    loss = MarginCalibrationLoss(class_counts=[9, 1])
    (scaled,) = torch.autograd.grad(loss(half, labels) * 2.0**16, half)
    exact = gradient(loss, half.detach().float().requires_grad_(), labels) * 2.0**16
    torch.testing.assert_close(scaled.float(), exact, rtol=6e-4, atol=1e-7)


@pytest.mark.parametrize("learning_rate", [1.0, 100.0])
def test_three_hundred_steps_with_a_one_voxel_class(learning_rate):
    """Project-MONAI/research-contributions/issues/27: NaN after a while."""
    torch.manual_seed(0)
    network = torch.nn.Conv2d(1, 3, 3, padding=1)
    image, labels = torch.randn(1, 1, 8, 8), torch.zeros(1, 1, 8, 8, dtype=torch.long)
    labels[0, 0, 2:5, 2:5], labels[0, 0, 7, 7] = 1, 2
    loss = MarginCalibrationLoss(class_counts=ClassCounts(np.bincount(labels.flatten().numpy())))
    optimizer = torch.optim.SGD(network.parameters(), lr=learning_rate)
    for _ in range(300):
        optimizer.zero_grad()
        value = loss(network(image), labels)
        value.backward()
        optimizer.step()
        assert torch.isfinite(value)
    assert all(torch.isfinite(p).all() for p in network.parameters())


def test_mispredicted_foreground_keeps_its_gradient():
    """Project-MONAI/MONAI/issues/807, MIC-DKFZ/nnUNet/issues/1395: 8 lesion voxels in 128^3, everything called background."""
    labels = torch.zeros(1, 1, 128, 128, 128, dtype=torch.uint8)
    labels[0, 0, 60:62, 60:62, 60:62] = 1
    logits = torch.zeros(1, 2, 128, 128, 128)
    logits[:, 0] = 30.0
    logits.requires_grad_()
    counts = [128**3 - 8, 8]
    for loss in (
        MarginCalibrationLoss(class_counts=counts),
        monai_margincal.MarginCalibrationDiceLoss(class_counts=counts),
    ):
        slopes = gradient(loss, logits, labels)[:, :, 60:62, 60:62, 60:62] * 128**3
        assert (slopes[:, 1] < -1).all()
        assert (slopes[:, 0] > 1).all()


def test_logits_on_another_scale():
    """kaidic/LDAM-DRW/issues/20, /13, /2: NaN with unnormalised logits."""
    logits, labels = logits_and_labels(2, 3, 9)
    assert torch.isfinite(MarginCalibrationLoss(class_counts=[90, 9, 1])(logits * 1e3, labels))
    assert "tau" in MarginCalibrationLoss.__doc__
    assert "never normalised" in MarginCalibrationLoss.__doc__
