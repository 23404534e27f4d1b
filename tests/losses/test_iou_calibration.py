"""Margins and weights that follow the IoU: the identities behind them, by brute force; what they write; how they are saved."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from monai_margincal.losses import MarginCalibrationDiceLoss, MarginCalibrationLoss
from monai_margincal.losses.iou_calibration import (
    BoundWeights,
    IoUCalibratedMargins,
    iou_calibrated_margin,
    iou_optimal_threshold,
)

NO_MARGINS = ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0])


def _decision(loss: MarginCalibrationLoss, eta: float) -> bool:
    """Whether a voxel of class 1 with probability eta is given to class 1 by the logits that minimise the expected loss."""
    grid = torch.linspace(-30, 30, 2401, dtype=torch.float64)
    logits = torch.stack([torch.zeros_like(grid), grid], dim=1)
    zero, one = (torch.full((len(grid),), k) for k in (0, 1))
    expected = (1 - eta) * loss(logits, zero) + eta * loss(logits, one)
    return float(grid[int(expected.argmin())]) > 0


def _threshold(loss: MarginCalibrationLoss) -> float:
    low, high = 1e-6, 1 - 1e-6
    for _ in range(22):
        middle = (low + high) / 2
        low, high = (low, middle) if _decision(loss, middle) else (middle, high)
    return (low + high) / 2


@pytest.mark.parametrize("base", [2, "e"])
@pytest.mark.parametrize("weight", [1.0, 0.5])
@pytest.mark.parametrize("iou", [0.55, 0.75, 0.9, 1.0])
def test_the_margin_puts_the_decision_at_the_iou_optimal_threshold(iou, weight, base):
    """The identity rho = -ln(2J - 1), in base 2 -log2(2J - 1), found by minimising the expected loss over the logits."""
    rho = float(iou_calibrated_margin(iou, maximum=10.0, base_e=base == "e"))
    loss = MarginCalibrationLoss(
        margins=([rho, 0.0], [0.0, rho]), negative_weight=weight, base=base, reduction="none"
    ).double()
    # a grid of logits 0.025 apart moves the found threshold by less than this
    assert _threshold(loss) == pytest.approx(iou / (1 + iou), abs=0.01)


@pytest.mark.parametrize("iou", [0.2, 0.5, 0.8])
def test_the_weights_put_the_decision_at_the_iou_optimal_threshold(iou):
    """Weights 1 / U and J / U on class 1 alone: the threshold J / (1 + J) follows from their ratio."""
    loss = MarginCalibrationLoss(
        margins=([0.0, 0.0], [0.0, 0.0]),
        positive_weight=[0.0, 1.0],
        negative_weight=[0.0, iou],
        reduction="none",
    ).double()
    assert _threshold(loss) == pytest.approx(iou / (1 + iou), abs=0.01)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31 - 1))
def test_the_optimal_threshold_maximises_the_expected_iou(seed):
    """Selecting eta > J* / (1 + J*) reaches J*, the best IoU of expectations over all thresholds."""
    eta = np.sort(np.random.RandomState(seed).beta(0.4, 1.5, size=400))
    cuts = np.concatenate([[0.0], eta])
    ious = [eta[eta > cut].sum() / (eta.sum() + (1 - eta[eta > cut]).sum()) for cut in cuts]
    best = max(ious)
    chosen = eta > float(iou_optimal_threshold(torch.tensor(best, dtype=torch.float64)))
    assert eta[chosen].sum() / (eta.sum() + (1 - eta[chosen]).sum()) == pytest.approx(best, rel=1e-12)


def test_margin_is_bounded_and_falls_with_the_iou():
    iou = torch.linspace(0, 1, 101, dtype=torch.float64)
    margin = iou_calibrated_margin(iou, maximum=3.0)
    assert (margin[iou <= 0.5] == 3.0).all()
    assert (margin.diff() <= 0).all()
    assert margin[-1] == 0
    assert not math.copysign(1, float(margin[-1])) < 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: iou_calibrated_margin(1.5), r"IoUs must be in \[0, 1\], found 1.5"),
        (lambda: iou_optimal_threshold(torch.tensor([0.5, float("nan")])), r"IoUs must be in \[0, 1\]"),
        (lambda: iou_calibrated_margin(0.5, maximum=-1.0), "maximum must be finite and >= 0, found -1.0"),
        (lambda: iou_calibrated_margin(0.5, maximum=math.inf), "maximum must be finite and >= 0, found inf"),
        (lambda: BoundWeights(_loss(), minimum_union=0.0), r"minimum_union must be in \(0, 1\], found 0.0"),
        (lambda: BoundWeights(_loss(), warmup=-1), "warmup must be >= 0 steps, found -1"),
        (lambda: IoUCalibratedMargins(_loss(), maximum=-2.0), "maximum must be finite and >= 0, found -2.0"),
        (
            lambda: BoundWeights(torch.nn.CrossEntropyLoss()),
            "loss is a CrossEntropyLoss: expected a MarginCalibrationLoss",
        ),
        (lambda: BoundWeights(MarginCalibrationLoss(margins=0.0)), "the loss has to know its classes"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def _loss(**options) -> MarginCalibrationLoss:
    return MarginCalibrationLoss(margins=NO_MARGINS, **options)


def _step(seed: int, classes: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.randn(2, classes, 6, 7, generator=generator),
        torch.randint(classes, (2, 1, 6, 7), generator=generator),
    )


def test_bound_weights_are_the_gradient_of_the_mean_bound():
    """Numerically: d mean_k (p_k - a_k) / (p_k + b_k), at the running statistics, by central differences."""
    loss = _loss()
    controller = BoundWeights(loss, warmup=0)
    controller.update(*_step(0))
    matrix = controller.statistics.matrix.numpy()
    share, hit = matrix.sum(1), np.diagonal(matrix)
    missed, invented = share - hit, matrix.sum(0) - hit

    def bound(a, b):
        return np.mean((share - a) / (share + b))

    for k in range(3):
        nudge = 1e-6 * np.eye(3)[k]
        positive = -(bound(missed + nudge, invented) - bound(missed - nudge, invented)) / 2e-6
        negative = -(bound(missed, invented + nudge) - bound(missed, invented - nudge)) / 2e-6
        assert float(loss.positive_weight[k]) == pytest.approx(positive, rel=1e-5)
        assert float(loss.negative_weight[k]) == pytest.approx(negative, rel=1e-5)
    assert loss.margin_positive.tolist() == [0, 0, 0]


@pytest.mark.parametrize(("base", "margin"), [("e", math.log(2)), (2, 1.0)])
def test_iou_margins_go_to_the_foreground_and_their_mean_to_the_background(base, margin):
    loss = MarginCalibrationLoss(margins=([1.0, 1.0, 1.0], [1.0, 1.0, 1.0]), base=base)
    controller = IoUCalibratedMargins(loss, warmup=0)
    labels = torch.tensor([[0, 0, 1, 1, 1, 1, 2, 2]])
    predicted = torch.tensor([[0, 0, 1, 1, 1, 0, 2, 2]])  # J_1 = 3/4, J_2 = 1
    controller.update(torch.nn.functional.one_hot(predicted, 3).movedim(-1, 1).float(), labels)
    torch.testing.assert_close(loss.margin_positive, torch.tensor([0.0, margin, 0.0]))
    torch.testing.assert_close(loss.margin_negative, torch.tensor([4 / 6 * margin, 0.0, 0.0]))


def test_warmup_only_watches():
    loss = _loss()
    before = loss.positive_weight.clone()
    controller = BoundWeights(loss, warmup=3)
    for seed in range(2):
        controller.update(*_step(seed))
        assert torch.equal(loss.positive_weight, before)
    controller.update(*_step(2))
    assert not torch.equal(loss.positive_weight, before)


def test_a_class_that_was_never_seen_keeps_finite_weights_and_margins():
    for make in (BoundWeights, IoUCalibratedMargins):
        loss = _loss()
        controller = make(loss, warmup=0)
        logits = torch.zeros(1, 3, 5)
        logits[:, 0] = 1
        controller.update(logits, torch.zeros(1, 5))
        values = torch.cat([loss.margin_negative, loss.margin_positive, loss.positive_weight, loss.negative_weight])
        assert torch.isfinite(values).all()
        assert (values >= 0).all()


def test_compound_losses_are_found_inside():
    loss = MarginCalibrationDiceLoss(margins=NO_MARGINS)
    controller = BoundWeights(loss, warmup=0)
    controller.update(*_step(0))
    inner = next(module for module in loss.modules() if isinstance(module, MarginCalibrationLoss))
    assert float(inner.positive_weight.max()) != 1.0


def test_the_losses_ignore_index_is_taken_over():
    loss = _loss(ignore_index=255)
    controller = BoundWeights(loss, warmup=0)
    logits, labels = _step(0)
    controller.update(logits, torch.full_like(labels, 255))
    assert int(controller.statistics.updates) == 0


@pytest.mark.parametrize("make", [BoundWeights, IoUCalibratedMargins])
def test_a_resumed_run_has_the_same_loss(make):
    """State of the controller alone brings back statistics and what follows from them."""
    loss = _loss()
    controller = make(loss, warmup=1)
    for seed in range(3):
        controller.update(*_step(seed))
    fresh = _loss()
    resumed = make(fresh, warmup=1)
    resumed.load_state_dict(controller.state_dict())
    for name in ("margin_negative", "margin_positive", "positive_weight", "negative_weight"):
        assert torch.equal(getattr(fresh, name), getattr(loss, name))
    assert set(controller.state_dict()) == {"statistics.average", "statistics.updates"}
