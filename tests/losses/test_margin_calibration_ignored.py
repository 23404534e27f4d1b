"""Ignored voxels, wrong labels, classes that were not annotated or do not occur: what users reported of other losses."""

from __future__ import annotations

import pytest
import torch
from losses.problems import gradient, logits_and_labels

from monai_margincal import ClassCounts, MarginCalibrationLoss


@pytest.mark.parametrize("form", ["index", "one-hot"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_all_ignored(form, reduction):
    """pytorch/pytorch/issues/70348, /116349, /75181."""
    logits = torch.randn(2, 3, 4).fill_(torch.nan).requires_grad_()
    target = torch.full((2, 1 if form == "index" else 3, 4), 255)
    value = MarginCalibrationLoss(class_counts=[9, 5, 2], ignore_index=255, reduction=reduction)(logits, target)
    assert (value == 0).all()
    value.sum().backward()
    assert (logits.grad == 0).all()


@pytest.mark.parametrize("junk", [torch.nan, torch.inf, -torch.inf, 1e38])
@pytest.mark.parametrize("form", ["index", "one-hot"])
@pytest.mark.parametrize("factor", [1.0, torch.inf])
def test_an_ignored_voxel_changes_nothing(junk, form, factor):
    logits, labels = logits_and_labels(2, 3, 6)
    if form == "one-hot":
        labels = torch.nn.functional.one_hot(labels[:, 0], 3).movedim(-1, 1).float()
    labels[0, :, 2:4] = 255
    loss = MarginCalibrationLoss(class_counts=[90, 9, 1], ignore_index=255)
    expected, slopes = loss(logits, labels), gradient(loss, logits, labels)
    changed = logits.detach().clone()
    changed[0, :, 2] = junk
    changed[0, 1, 3] = junk
    changed.requires_grad_()
    assert torch.equal(loss(changed, labels), expected)
    assert torch.equal(gradient(loss, changed, labels), slopes)
    (scaled,) = torch.autograd.grad(loss(changed, labels), changed, torch.tensor(factor))
    assert (scaled[0, :, 2:4] == 0).all()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float32])
def test_undeclared_label(dtype):
    """kornia/kornia/issues/839, yiyixuxu/polyloss-pytorch/issues/4: 255 was used as an index."""
    logits, labels = logits_and_labels(1, 3, 8)
    labels = labels.to(dtype)
    labels[0, 0, 1], labels[0, 0, 5] = 255, 17
    counts = ClassCounts([90, 9, 1], names=["background", "liver", "tumour"])
    with pytest.raises(
        ValueError, match=r"value\(s\) 17, 255, expected class ids \[0, 1, 2\] \(0 background, 1 liver, 2 tu"
    ):
        MarginCalibrationLoss(class_counts=counts)(logits, labels)
    with pytest.raises(ValueError, match=r"value\(s\) 17, expected class ids \[0, 1, 2\] .* or the ignored value 255"):
        MarginCalibrationLoss(class_counts=counts, ignore_index=255)(logits, labels)


def test_mask_of_0_and_255():
    logits, labels = logits_and_labels(1, 2, 8)
    with pytest.raises(ValueError, match=r"255, expected .* divided by 255 first"):
        MarginCalibrationLoss(margins=0.0)(logits, labels * 255)


def test_negative_label_that_is_not_the_ignored_one():
    """pytorch/pytorch/issues/12670."""
    logits, labels = logits_and_labels(1, 3, 8)
    labels[0, 0, :2] = torch.tensor([-4, -1])
    with pytest.raises(ValueError, match=r"value\(s\) -4, expected class ids \[0, 1, 2\] or the ignored value -1"):
        MarginCalibrationLoss(margins=0.0, ignore_index=-1)(logits, labels)


@pytest.mark.parametrize("value", [0.5, torch.nan, torch.inf, 1e20])
def test_labels_that_are_no_whole_numbers(value):
    logits, labels = logits_and_labels(1, 3, 8)
    labels = labels.float()
    labels[0, 0, 3] = value
    with pytest.raises(ValueError, match=f"not integers: {value:g}, expected class ids".replace("+", r"\+")):
        MarginCalibrationLoss(margins=0.0)(logits, labels)


def test_many_undeclared_labels_are_not_all_listed():
    with pytest.raises(ValueError, match=r"9, \.\.\. \(98 values in all\)"):
        MarginCalibrationLoss(margins=0.0)(torch.randn(1, 2, 100), torch.arange(100)[None])


@pytest.mark.parametrize("form", ["index", "one-hot"])
def test_an_ignored_class_still_competes(form):
    """pytorch/pytorch/issues/63004: ignore_index in 0 ... C - 1 drops voxels, not the class."""
    logits, labels = logits_and_labels(2, 3, 7)
    one_hot = torch.nn.functional.one_hot(labels[:, 0], 3).movedim(-1, 1)
    target = labels if form == "index" else one_hot
    loss = MarginCalibrationLoss(class_counts=[900, 90, 10], ignore_index=0)
    voxels = MarginCalibrationLoss(class_counts=[900, 90, 10], reduction="none")(logits, target)
    torch.testing.assert_close(loss(logits, target), voxels[labels != 0].mean())
    slopes = gradient(loss, logits, target)
    assert (slopes[:, 0][labels[:, 0] != 0] != 0).all()
    assert (slopes.movedim(1, -1)[labels[:, 0] == 0] == 0).all()


def test_one_hot_zero_vector_with_ignored_background():
    logits = torch.randn(1, 3, 2)
    target = torch.tensor([[[0, 0], [0, 1], [0, 0]]])
    loss = MarginCalibrationLoss(margins=0.0, ignore_index=0)
    torch.testing.assert_close(loss(logits, target), loss(logits[..., 1:], target[..., 1:]))


def test_class_that_was_not_annotated():
    """MIC-DKFZ/nnUNet/issues/1683: that logit gets no gradient, and its value does not matter."""
    logits, labels = logits_and_labels(2, 4, 9, classes=3)
    mask = torch.tensor([[True, True, True, False], [True, True, True, True]])
    loss = MarginCalibrationLoss(class_counts=[9000, 900, 90, 10])
    value, slopes = loss(logits, labels, mask), torch.autograd.grad(loss(logits, labels, mask), logits)[0]
    assert (slopes[0, 3] == 0).all()
    assert (slopes[1, 3] != 0).all()
    for junk in (50.0, -50.0, torch.nan, torch.inf):
        changed = logits.detach().clone()
        changed[0, 3] = junk
        torch.testing.assert_close(loss(changed, labels, mask), value, rtol=0, atol=0)
    assert torch.equal(loss(logits, labels, torch.ones(2, 4, dtype=torch.bool)), loss(logits, labels))


def test_label_of_a_class_that_was_not_annotated():
    logits, labels = logits_and_labels(1, 3, 9)
    mask = torch.tensor([[True, True, False]])
    one_hot = torch.nn.functional.one_hot(labels[:, 0], 3).movedim(-1, 1)
    for target in (labels, one_hot):
        with pytest.raises(ValueError, match=r"class\(es\) \[2\] in a case where class_mask"):
            MarginCalibrationLoss(margins=0.0)(logits, target, mask)


def test_case_with_one_annotated_class_counts_as_ignored():
    logits, labels = logits_and_labels(2, 3, 5)
    labels[0] = 1
    mask = torch.tensor([[False, True, False], [True, True, True]])
    loss = MarginCalibrationLoss(class_counts=[90, 9, 1])
    torch.testing.assert_close(loss(logits, labels, mask), loss(logits[1:], labels[1:]))
    assert (gradient(loss, logits, labels, mask)[0] == 0).all()


@pytest.mark.parametrize(
    "mask", [torch.ones(2, 3), torch.ones(3, 2, dtype=torch.bool), torch.ones(3, dtype=torch.bool)]
)
def test_shape_of_the_class_mask(mask):
    logits, labels = logits_and_labels(2, 3, 5)
    with pytest.raises(ValueError, match=r"class_mask .* expected bool \(2, 3\)"):
        MarginCalibrationLoss(margins=0.0)(logits, labels, mask)


def test_count_of_zero():
    """The released code makes infinite margins of it."""
    with pytest.warns(UserWarning, match="no voxel of class '2 spleen'") as caught:
        loss = MarginCalibrationLoss(class_counts=ClassCounts([90, 10, 0], names=["background", "liver", "spleen"]))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert loss.margin_negative[2] == loss.margin_positive[2] == 0
    logits, labels = logits_and_labels(1, 3, 5)
    assert torch.isfinite(loss(logits, labels))


def test_class_absent_from_the_batch_is_only_pushed_down():
    """bermanmaxim/LovaszSoftmax/issues/20: no gradient may pull towards a class that is not there."""
    logits, labels = logits_and_labels(2, 3, 50, classes=2)
    slopes = gradient(MarginCalibrationLoss(margins=0.0), logits, labels)[:, 2]
    not_on_top = logits.argmax(1) != 2
    second = logits.topk(2, dim=1).indices[:, 1] == 2
    assert (slopes[not_on_top & ~second] > 0).all()
