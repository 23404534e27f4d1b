"""Class weights against values worked out by hand."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from monai.losses import DiceCELoss, FocalLoss

from monai_margincal import ClassCounts
from monai_margincal.statistics.class_weights import (
    effective_number_weights,
    inverse_frequency_weights,
    median_frequency_weights,
)

ALL = [inverse_frequency_weights, median_frequency_weights, effective_number_weights]


def test_hand_values() -> None:
    """Weights with their formula, which every project computes anew.

    TensorFlow-ENet/issues/26, SegNet-Tutorial/issues/31, mmsegmentation/issues/2271, H-DenseUNet/issues/22.
    """
    assert inverse_frequency_weights([60, 30, 10], "none").tolist() == pytest.approx([100 / 180, 100 / 90, 100 / 30])
    assert inverse_frequency_weights([60, 30, 10], "sum").tolist() == pytest.approx([0.1111111, 0.2222222, 0.6666667])
    # frequencies over the cases in which a class occurs: 150/200, 40/100, 10/100 -> median 0.4
    cases = {"a": [60, 40, 0], "b": [90, 0, 10]}
    counts = ClassCounts([150, 40, 10], cases=cases)
    assert median_frequency_weights(counts).tolist() == pytest.approx([0.4 / 0.75, 1.0, 4.0])
    # without cases: 0.75, 0.2, 0.05
    assert median_frequency_weights([150, 40, 10]).tolist() == pytest.approx([0.2 / 0.75, 1.0, 4.0])
    assert effective_number_weights([2, 1], beta=0.5, normalization="none").tolist() == pytest.approx([0.5 / 0.75, 1.0])
    assert effective_number_weights([7, 3], beta=0.0).tolist() == [1.0, 1.0]


def test_effective_number_near_one_is_inverse_frequency() -> None:
    found = effective_number_weights([900, 100], beta=1 - 1e-12, normalization="sum")
    assert torch.allclose(found, inverse_frequency_weights([900, 100], "sum"), rtol=1e-5)


@given(st.lists(st.integers(1, 10**12), min_size=2, max_size=9), st.sampled_from(ALL))
@settings(max_examples=60, deadline=None)
def test_rarer_classes_weigh_no_less(counts: list[int], weights: object) -> None:
    found = weights(counts)  # type: ignore[operator]
    assert found.dtype == torch.float32
    assert torch.isfinite(found).all()
    order = sorted(range(len(counts)), key=counts.__getitem__)
    assert (found[order].diff() <= 1e-6 * found.max()).all()


@pytest.mark.parametrize("weights", ALL)
def test_absent_class_gets_zero_and_one_warning(weights: object) -> None:
    counts = ClassCounts({0: 90, 5: 0, 9: 10}, names=["background", "lesion", "organ"])
    with pytest.warns(UserWarning, match=r"no voxel of the class\(es\) 5 lesion") as caught:
        found = weights(counts, normalization="mean")  # type: ignore[operator]
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert found[1] == 0
    assert found[[0, 2]].mean() == pytest.approx(1.0)


@pytest.mark.parametrize(("loss", "softmax"), [(DiceCELoss, "softmax"), (FocalLoss, "use_softmax")])
@pytest.mark.parametrize("weights", ALL)
def test_monai_losses_take_them(loss: type, softmax: str, weights: object) -> None:
    criterion = loss(to_onehot_y=True, **{softmax: True}, weight=weights([90, 8, 2]))  # type: ignore[operator]
    value = criterion(torch.randn(1, 3, 4, 4, requires_grad=True), torch.randint(0, 3, (1, 1, 4, 4)))
    value.backward()
    assert torch.isfinite(value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: inverse_frequency_weights([0, 0]), "no voxel of any class"),
        (lambda: inverse_frequency_weights([1, 1], normalization="max"), "normalization is 'max', expected one of"),
        (lambda: effective_number_weights([1, 1], beta=1.0), "beta is 1.0: expected 0 <= beta < 1"),
    ],
)
def test_faults(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]
