"""Shapes, layouts, weights and forms of the target: what users reported of other losses, and what this one must do."""

from __future__ import annotations

import pytest
import torch
from losses.oracle import oracle
from losses.problems import gradient, logits_and_labels
from monai.data import MetaTensor

from monai_margincal import MarginCalibrationLoss


@pytest.mark.parametrize("wrong", [3, 5])
@pytest.mark.parametrize("background", [True, False])
@pytest.mark.parametrize("what", ["margins", "positive_weight", "negative_weight"])
@pytest.mark.parametrize("kind", [list, torch.tensor])
def test_lengths(what, wrong, background, kind):
    """Project-MONAI/MONAI/issues/7729: always one entry per class, and the message says so."""
    values = kind([1.0] * wrong)
    given_values = {what: (values, values) if what == "margins" else values}
    loss = MarginCalibrationLoss(include_background=background, **{"margins": 0.0, **given_values})
    logits, labels = logits_and_labels(1, 4, 5)
    flag = "" if background else "background .* include_background=False"
    with pytest.raises(
        ValueError, match=rf"has the shape \({wrong},\).*\(1, 4, 5\).*expected \(4,\), one entry.*{flag}"
    ):
        loss(logits, labels)
    right = kind([1.0] * 4)
    given_values = {what: (right, right) if what == "margins" else right}
    MarginCalibrationLoss(include_background=background, **{"margins": 0.0, **given_values})(logits, labels)


def test_lengths_disagree_at_once():
    with pytest.raises(ValueError, match=r"'margin_negative': 3.*'positive_weight': 2.*include_background=False"):
        MarginCalibrationLoss(include_background=False, class_counts=[9, 5, 2], positive_weight=[1.0, 2.0])


@pytest.mark.parametrize(
    ("target", "settings_"),
    [
        ((1, 2, 5), {}),
        ((1, 4, 6), {}),
        ((2, 4, 5), {}),
        ((1, 5, 1), {}),
        ((1, 4, 5), {"to_onehot_y": True}),
        ((5,), {}),
    ],
)
def test_message_holds_both_shapes(target, settings_):
    """Project-MONAI/MONAI/pull/7587: ValueError, as documented, with both shapes."""
    loss = MarginCalibrationLoss(margins=0.0, **settings_)
    with pytest.raises(ValueError) as error:
        loss(torch.randn(1, 4, 5), torch.zeros(target))
    assert str(tuple(target)) in str(error.value)
    assert "(1, 4, 5)" in str(error.value)


def test_two_classes_without_background_learn():
    """Project-MONAI/MONAI/issues/2509: the loss was 0 there."""
    logits, labels = logits_and_labels(2, 2, 4, 4)
    loss = MarginCalibrationLoss(include_background=False, class_counts=[90, 10])
    slopes = gradient(loss, logits, labels)
    assert (slopes.abs() > 0).all()


def test_background_competes_although_it_is_left_out():
    """Project-MONAI/MONAI/issues/5413: the channel was dropped before the softmax."""
    logits, labels = logits_and_labels(2, 3, 6)
    counts = [900, 90, 10]
    left_out = MarginCalibrationLoss(include_background=False, class_counts=counts)(logits, labels)
    zero_weight = MarginCalibrationLoss(
        class_counts=counts, positive_weight=[0.0, 1, 1], negative_weight=[0.0, 1 / 3, 1 / 3]
    )(logits, labels)
    torch.testing.assert_close(left_out, zero_weight, rtol=0, atol=0)
    with torch.no_grad():
        logits[:, 0] += 50
    raised = MarginCalibrationLoss(include_background=False, class_counts=counts)(logits, labels)
    assert raised > left_out


@pytest.mark.parametrize("spatial", [(4, 4, 4), (4,), (3, 5), (4, 2)])
def test_weights_run_along_the_class_dimension(spatial):
    """kornia/kornia/pull/3033: spatial sizes equal to C must not attract the weights."""
    logits, labels = logits_and_labels(4, 4, *spatial)
    terms = [torch.rand(4).tolist() for _ in range(4)]
    loss = MarginCalibrationLoss(margins=terms[:2], negative_weight=terms[2], positive_weight=terms[3])
    expected, _, _ = oracle(logits.detach().flatten(2).numpy(), labels.flatten(1).numpy(), *terms)
    assert loss(logits, labels).item() == pytest.approx(expected.mean(), rel=1e-5)


def test_every_form_of_the_same_labels():
    """Project-MONAI/tutorials/issues/95: (B, 1, D, H, W) float labels."""
    logits, labels = logits_and_labels(2, 3, 4, 3, 2)
    loss = MarginCalibrationLoss(class_counts=[900, 90, 10])
    expected = loss(logits, labels)
    for dtype in (
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.uint16,
        torch.int32,
        torch.uint32,
        torch.float16,
        torch.float64,
    ):
        for target in (labels.to(dtype), labels[:, 0].to(dtype)):
            torch.testing.assert_close(loss(logits, target), expected, rtol=0, atol=0)
            to_onehot = MarginCalibrationLoss(to_onehot_y=True, class_counts=[900, 90, 10])
            torch.testing.assert_close(to_onehot(logits, target), expected, rtol=0, atol=0)
    torch.testing.assert_close(loss(logits, MetaTensor(labels)), expected, rtol=0, atol=0)


def test_overlapping_channels_are_refused():
    """Project-MONAI/MONAI/pull/5292, OSUPCVLab/SegFormer3D/issues/17: BraTS TC, WT, ET were argmaxed."""
    regions = torch.zeros(1, 3, 4, 4)
    regions[0, 1, :3], regions[0, 0, :2], regions[0, 2, :1] = 1, 1, 1
    with pytest.raises(ValueError, match=r"sums from 0 to 3 in 12 voxel.*BraTS"):
        MarginCalibrationLoss(margins=0.0)(torch.randn(1, 3, 4, 4), regions)


@pytest.mark.parametrize("value", [-0.5, 1.5, torch.nan])
def test_soft_labels_outside_the_unit_interval(value):
    target = torch.full((1, 2, 3), 0.5)
    target[0, 0, 1] = value
    with pytest.raises(ValueError, match=r"expected one-hot or soft labels in \[0, 1\]"):
        MarginCalibrationLoss(margins=0.0)(torch.randn(1, 2, 3), target)


def test_reduction_none_keeps_the_place():
    logits, labels = logits_and_labels(2, 3, 4, 5)
    labels[0, 0, 1, 2] = 255
    counts = [900, 90, 10]
    voxels = MarginCalibrationLoss(class_counts=counts, reduction="none", ignore_index=255)(logits, labels)
    assert voxels.shape == (2, 1, 4, 5)
    assert voxels[0, 0, 1, 2] == 0
    total = MarginCalibrationLoss(class_counts=counts, reduction="sum", ignore_index=255)(logits, labels)
    mean = MarginCalibrationLoss(class_counts=counts, ignore_index=255)(logits, labels)
    torch.testing.assert_close(voxels.sum(), total)
    torch.testing.assert_close(total / 39, mean)


def test_unknown_reduction():
    with pytest.raises(ValueError, match="avg"):
        MarginCalibrationLoss(margins=0.0, reduction="avg")
