"""Both parts in one pass give what they give one after the other, whatever the options."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from losses.sum_of_parts import sum_of_parts
from ops.ways import however_small

from monai_margincal import MarginCalibrationDiceLoss, MarginCalibrationTverskyLoss


@st.composite
def compounds(draw, classes):
    """Any compound, with any of its options."""
    background = draw(st.booleans()) or classes == 1
    smoothing = st.sampled_from([1e-5, 0.1, 2.0])
    options = {
        "lambda_margin": draw(st.sampled_from([0.0, 0.3, 1.0])),
        "include_background": background,
        "margins": draw(st.sampled_from([0.5, (0.1, 0.7)])),
        "base": draw(st.sampled_from([2, "e"])),
        "ignore_index": draw(st.sampled_from([None, 255, -1, 0, 1])),
        "reduction": draw(st.sampled_from(["mean", "sum"])),
        "global_mean": draw(st.booleans()),
        "smooth_nr": draw(smoothing),
        "smooth_dr": draw(smoothing),
        "batch": draw(st.booleans()),
        "soft_label": draw(st.booleans()),
    }
    options["global_mean"] &= options["reduction"] == "mean"
    if draw(st.booleans()):
        return MarginCalibrationTverskyLoss(
            lambda_tversky=1.7,
            alpha=draw(st.sampled_from([0.0, 0.3])),
            beta=draw(st.sampled_from([0.7, 1.0])),
            **options,
        )
    shown = max(classes, 2) - (0 if background else 1)
    weight = draw(st.sampled_from([None, 2.0, "per class"]))
    if weight == "per class":
        weight = None if classes == 1 else [1.0 + k for k in range(shown)]
    return MarginCalibrationDiceLoss(
        lambda_dice=0.6, squared_pred=draw(st.booleans()), jaccard=draw(st.booleans()), weight=weight, **options
    )


@st.composite
def problems(draw, dtype):
    """A compound and what it is called with: any form of target, ignored voxels and cases, classes that were not annotated."""
    cases, channels = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    classes = max(channels, 2)
    spatial = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    loss = draw(compounds(channels))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    logits = torch.randn(cases, channels, *spatial, generator=generator, dtype=dtype)
    logits = logits * draw(st.sampled_from([0.1, 3.0, 30.0]))
    mask = torch.ones(cases, classes, dtype=torch.bool)
    if draw(st.booleans()):
        mask = torch.rand(cases, classes, generator=generator) < 0.7
    shares = torch.rand(cases, classes, *spatial, generator=generator, dtype=dtype) + 0.01
    # where no class was annotated, the first one stands there and does not count
    shares = torch.where(mask.view(cases, classes, *(1,) * len(spatial)), shares, 0.0)
    shares[:, 0] += (shares.sum(1) == 0).to(dtype)
    labels = shares.argmax(1, keepdim=True)
    form = draw(st.sampled_from(["index", "one-hot", "soft"]))
    if form == "index" or channels == 1:
        target = labels
    elif form == "one-hot":
        target = torch.zeros_like(shares).scatter_(1, labels, 1)
    else:
        target = shares / shares.sum(1, keepdim=True)
    ignored = loss.margin_calibration.ignore_index
    if ignored in (255, -1):
        void = torch.rand(cases, 1, *spatial, generator=generator) < 0.3
        void[0] |= draw(st.booleans())
        target = torch.where(void, torch.tensor(ignored, dtype=target.dtype), target)
    return loss.to(dtype), logits, target, mask if not mask.all() else None


def both(function, logits, *arguments):
    leaf = logits.detach().clone().requires_grad_()
    value = function(leaf, *arguments)
    return value.detach(), torch.autograd.grad(value, leaf)[0]


@given(problem=problems(torch.float64))
@settings(deadline=None, max_examples=300)
def test_in_double_precision(problem):
    loss, logits, target, mask = problem
    found = both(loss, logits, target, mask)
    expected = both(lambda *arguments: sum_of_parts(loss, *arguments), logits, target, mask)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("way", ["blockwise", "compiled"])
@given(problem=problems(torch.float32))
@settings(deadline=None, max_examples=150)
def test_in_single_precision(way, problem):
    loss, logits, target, mask = problem
    with however_small(way):
        found = both(loss, logits, target, mask)
    target = target.double() if target.is_floating_point() else target
    expected = both(lambda *arguments: sum_of_parts(loss, *arguments), logits.double(), target, mask)
    torch.testing.assert_close(found[0].double(), expected[0], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(found[1].double(), expected[1], rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("compound", [MarginCalibrationDiceLoss, MarginCalibrationTverskyLoss])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("form", ["index", "one-hot"])
def test_half_precision_is_rounded_once(compound, dtype, form):
    """The gradient of both parts, scaled as a `GradScaler` does, is what float32 gives for the same logits, rounded."""
    generator = torch.Generator().manual_seed(0)
    logits = (torch.randn(2, 4, 30, generator=generator) * 3).to(dtype)
    target = torch.randint(0, 4, (2, 1, 30), generator=generator)
    if form == "one-hot":
        target = torch.nn.functional.one_hot(target[:, 0], 4).movedim(-1, 1).to(dtype)
    loss = compound(margins=0.5)
    value, slopes = both(lambda *arguments: 4096 * loss(*arguments), logits, target)
    expected, exact = both(lambda *arguments: 4096 * loss(*arguments), logits.float(), target)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(slopes, exact.to(dtype), rtol=torch.finfo(dtype).eps, atol=1e-3)


def test_a_single_channel_with_a_probability():
    """A floating target of one channel is soft."""
    logits, target = torch.randn(2, 1, 9, dtype=torch.float64), torch.rand(2, 1, 9, dtype=torch.float64)
    for soft_label in (False, True):
        loss = MarginCalibrationDiceLoss(margins=0.5, soft_label=soft_label).double()
        expected = both(lambda x, y, loss=loss: sum_of_parts(loss, x, y), logits, target)
        torch.testing.assert_close(both(loss, logits, target), expected, rtol=1e-12, atol=1e-12)


def test_infinite_logits_leave_both_parts_finite():
    logits = torch.tensor([[[torch.inf, 1.0, -torch.inf], [0.0, -torch.inf, 2.0], [1.0, 0.5, 0.0]]])
    loss = MarginCalibrationTverskyLoss(margins=0.5)
    labels = torch.tensor([[0, 2, 1]])
    huge = both(loss, logits.clamp(-(2.0**100), 2.0**100), labels)
    torch.testing.assert_close(both(loss, logits, labels), huge)
    assert torch.isfinite(huge[1]).all()
    nan = logits.clone()
    nan[0, 0, 1] = torch.nan
    for one in (loss, MarginCalibrationTverskyLoss(0.0, margins=0.5)):
        assert one(nan, labels).isnan()


def test_overlap_alone_costs_no_margin_loss():
    """With ``lambda_margin=0`` the loss is that of the overlap, and changing margins changes nothing."""
    logits, labels = torch.randn(2, 3, 20), torch.randint(0, 3, (2, 1, 20))
    loss = MarginCalibrationTverskyLoss(0.0, margins=0.5)
    before = both(loss, logits, labels)
    loss.margin_calibration.margin_negative.fill_(7)
    torch.testing.assert_close(both(loss, logits, labels), before, rtol=0, atol=0)
    labels[0, 0, 0] = 9
    with pytest.raises(ValueError, match=r"label value\(s\) 9, expected class ids"):
        loss(logits, labels)


def test_kernels_for_the_margin_part():
    """Where Triton computes the margin loss, in its precision."""
    logits, labels = torch.randn(2, 3, 40), torch.randint(0, 3, (2, 1, 40))
    labels[0, 0, :3] = 255
    found = both(MarginCalibrationDiceLoss(margins=0.5, ignore_index=255, backend="triton"), logits, labels)
    expected = both(MarginCalibrationDiceLoss(margins=0.5, ignore_index=255, backend="eager"), logits, labels)
    torch.testing.assert_close(found, expected, rtol=3e-6, atol=3e-6)
