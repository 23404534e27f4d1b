"""Ignored is not absent: a case, or a class of a case, that was not annotated takes no part in the mean of an overlap loss."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from losses.oracle import oracle

from monai_margincal import LovaszSoftmaxLoss, MarginCalibrationDiceLoss, MarginCalibrationTverskyLoss

COUNTS = [9000, 900, 90]
COMPOUNDS = {
    "dice": (MarginCalibrationDiceLoss, {}),
    "jaccard, smoothed unevenly": (MarginCalibrationDiceLoss, {"jaccard": True, "smooth_nr": 0.5, "smooth_dr": 2.0}),
    "dice not smoothed": (MarginCalibrationDiceLoss, {"smooth_nr": 0.0, "smooth_dr": 0.0}),
    "dice squared": (MarginCalibrationDiceLoss, {"squared_pred": True, "weight": [1.0, 2.0, 3.0]}),
    "tversky": (MarginCalibrationTverskyLoss, {"smooth_nr": 0.25, "smooth_dr": 1.0}),
    "dice of the batch": (MarginCalibrationDiceLoss, {"batch": True}),
    "tversky of the batch": (MarginCalibrationTverskyLoss, {"batch": True}),
}
compounds = pytest.mark.parametrize(("compound", "options"), COMPOUNDS.values(), ids=COMPOUNDS.keys())
reductions = pytest.mark.parametrize("reduction", ["mean", "sum"])
IGNORED = [[True, False, False], [False, False, False]]


def problem(cases=3, channels=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(cases, channels, 12, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, max(channels, 2), (cases, 1, 12), generator=generator)
    return logits.requires_grad_(), labels


def one_hot(labels):
    return torch.nn.functional.one_hot(labels[:, 0], 3).movedim(-1, 1).double()


def value_and_gradient(loss, logits, *arguments):
    value = loss(logits, *arguments)
    assert value.requires_grad
    return value.detach(), torch.autograd.grad(value, logits)[0]


def assert_as_if_not_there(loss, logits, target, mask, gone):
    """Value and gradient are those of the other cases alone."""
    kept = [case for case in range(len(logits)) if case not in gone]
    value, slopes = value_and_gradient(loss, logits, target, mask)
    leaf = logits.detach()[kept].requires_grad_()
    expected = value_and_gradient(loss, leaf, target[kept], None if mask is None else mask[kept])
    torch.testing.assert_close((value, slopes[kept]), expected)
    assert (slopes[gone] == 0).all()


@compounds
@reductions
@pytest.mark.parametrize("ignore_index", [255, -1, 0])
@pytest.mark.parametrize("form", ["index", "one-hot"])
def test_a_wholly_ignored_case_is_not_a_perfect_one(compound, options, reduction, ignore_index, form):
    logits, labels = problem()
    labels[labels == ignore_index] = 1
    labels[1] = ignore_index
    target = labels
    if form == "one-hot":
        target = one_hot(labels.clamp(0, 2))
        if ignore_index != 0:
            target[1] = ignore_index
    loss = compound(class_counts=COUNTS, reduction=reduction, ignore_index=ignore_index, **options)
    assert_as_if_not_there(loss, logits, target, None, [1])


@compounds
@reductions
@pytest.mark.parametrize("row", IGNORED)
def test_nor_is_one_without_two_annotated_classes(compound, options, reduction, row):
    logits, labels = problem()
    labels[2] = 0
    mask = torch.tensor([[True] * 3, [True] * 3, row])
    loss = compound(class_counts=COUNTS, reduction=reduction, **options)
    for target in (labels, one_hot(labels)):
        assert_as_if_not_there(loss, logits, target, mask, [2])


@pytest.mark.parametrize("compound", [MarginCalibrationDiceLoss, MarginCalibrationTverskyLoss])
@reductions
@pytest.mark.parametrize("way", ["ignore_index", "class_mask"])
def test_one_channel(compound, reduction, way):
    logits, labels = problem(channels=1)
    mask = None
    if way == "ignore_index":
        labels[0] = 255
    else:
        labels[0], mask = 0, torch.tensor([[True, False], [True, True], [True, True]])
    loss = compound(class_counts=[90, 10], reduction=reduction, ignore_index=255)
    assert_as_if_not_there(loss, logits, labels, mask, [0])


@compounds
@reductions
@pytest.mark.parametrize("background", [True, False])
def test_a_class_that_was_not_annotated_is_not_a_perfect_one(compound, options, reduction, background):
    """One case with two of three classes annotated: what a loss of these two classes gives."""
    if "weight" in options:
        options = {**options, "weight": [1.0, 2.0, 3.0][0 if background else 1 :]}
    logits, labels = problem(cases=1)
    labels.clamp_(max=1)
    margins, weights = torch.tensor([[0.1, 0.6, 0.9], [0.2, 0.3, 0.4]]), torch.tensor([0.5, 0.7, 0.9])
    common = {"include_background": background, "reduction": reduction}
    three = compound(margins=margins, negative_weight=weights, **options, **common)
    if "weight" in options:
        options = {**options, "weight": options["weight"][:-1]}
        if len(options["weight"]) == 1:
            options["weight"] = None  # MONAI does not weight a single class
            three.overlap.class_weight.fill_(1)
    two = compound(margins=margins[:, :2], negative_weight=weights[:2], **options, **common)
    value, slopes = value_and_gradient(three, logits, labels, torch.tensor([[True, True, False]]))
    leaf = logits.detach()[:, :2].requires_grad_()
    torch.testing.assert_close((value, slopes[:, :2]), value_and_gradient(two, leaf, labels))
    assert (slopes[:, 2] == 0).all()


@compounds
@reductions
@pytest.mark.parametrize("way", ["ignore_index", "class_mask", "no case", "no voxel"])
def test_nothing_that_counts(compound, options, reduction, way):
    logits, labels = problem()
    mask = None
    if way == "ignore_index":
        labels[:] = 255
    elif way == "class_mask":
        labels[:], mask = 0, torch.tensor([[True, False, False]] * 3)
    elif way == "no case":
        logits, labels = logits.detach()[:0].requires_grad_(), labels[:0]
    else:
        logits, labels = logits.detach()[..., :0].requires_grad_(), labels[..., :0]
    loss = compound(class_counts=COUNTS, reduction=reduction, ignore_index=255, **options)
    value, slopes = value_and_gradient(loss, logits, labels, mask)
    assert value == 0
    assert (slopes == 0).all()


@given(
    seed=st.integers(0, 2**31),
    compound=st.sampled_from(["dice", "jaccard", "tversky"]),
    reduction=st.sampled_from(["mean", "sum"]),
    background=st.booleans(),
    ignored=st.sampled_from([0.0, 0.4, 1.0]),
    annotated=st.sampled_from([0.5, 0.8, 1.0]),
)
@settings(deadline=None, max_examples=80)
def test_literal_transcription(seed, compound, reduction, background, ignored, annotated):
    """Case by case and class by class in NumPy, over those alone that were annotated."""
    rng = np.random.default_rng(seed)
    logits, labels = rng.normal(0, 2, (3, 4, 6)), np.zeros((3, 6), int)
    mask = rng.random((3, 4)) < annotated
    for case in range(3):
        labels[case] = rng.choice(np.flatnonzero(mask[case]), 6) if mask[case].any() else 0
    void = (rng.random((3, 6)) < ignored) & (rng.random((3, 1)) < 0.7)
    enough = mask.sum(1) >= 2
    alpha, beta = {"dice": (0.5, 0.5), "jaccard": (1.0, 1.0), "tversky": (0.3, 0.7)}[compound]
    twice = 1 if compound == "tversky" else 2
    scores = []
    for case in range(3):
        seen = ~void[case]
        if not seen.any() or not enough[case]:
            continue
        exponents = np.where(mask[case][:, None], np.exp(logits[case]), 0)
        p = (exponents / exponents.sum(0))[:, seen]
        for k in range(0 if background else 1, 4):
            if mask[case, k]:
                y = labels[case][seen] == k
                tp, fp, fn = p[k][y].sum(), p[k][~y].sum(), (1 - p[k][y]).sum()
                scores.append(1 - (twice * tp + 1e-5) / (twice * (tp + alpha * fp + beta * fn) + 1e-5))
    overlap = sum(scores) / (max(len(scores), 1) if reduction == "mean" else 1)
    terms = np.linspace(0.1, 0.4, 4), np.linspace(0.5, 0.2, 4), np.full(4, 0.25), np.ones(4)
    counted = ~void & enough[:, None]
    losses, _, _ = oracle(logits, labels, *terms, valid=counted, annotated=mask, include_background=background)
    margin = losses.sum() / (max(counted.sum(), 1) if reduction == "mean" else 1)
    made = MarginCalibrationTverskyLoss if compound == "tversky" else MarginCalibrationDiceLoss
    options = {"jaccard": True} if compound == "jaccard" else {}
    loss = made(
        margins=terms[:2], include_background=background, reduction=reduction, ignore_index=255, **options
    ).double()
    target = torch.tensor(np.where(void, 255, labels))
    value = loss(torch.tensor(logits), target, torch.tensor(mask))
    assert value.item() == pytest.approx(margin + overlap, abs=1e-9)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_lovasz_per_image(reduction):
    logits, labels = problem()
    labels[1] = 255
    loss = LovaszSoftmaxLoss(per_image=True, ignore_index=255, reduction=reduction)
    if reduction == "none":
        assert loss(logits, labels)[1].item() == 0
    else:
        value, slopes = value_and_gradient(loss, logits, labels)
        leaf = logits.detach()[[0, 2]].requires_grad_()
        torch.testing.assert_close((value, slopes[[0, 2]]), value_and_gradient(loss, leaf, labels[[0, 2]]))
        assert (slopes[1] == 0).all()
