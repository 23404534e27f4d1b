"""What the loss can be told, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from losses.problems import logits_and_labels

from monai_margincal import MarginCalibrationLoss


def test_nothing_given():
    with pytest.raises(ValueError, match=r"found neither of .*count_labels"):
        MarginCalibrationLoss()


def test_both_given():
    with pytest.raises(ValueError, match=r"found both of class_counts and margins"):
        MarginCalibrationLoss(class_counts=[9, 1], margins=0.0)


def test_scale_beside_explicit_margins():
    with pytest.raises(ValueError, match=r"tau=2.0, .*along with explicit margins"):
        MarginCalibrationLoss(margins=0.0, tau=2.0)


@pytest.mark.parametrize("margins", [-0.1, (0.1, -0.1), ([0.1, torch.inf], [0.0, 0.0]), (0.1, torch.nan), torch.inf])
def test_margins_that_turn_the_loss_around(margins):
    with pytest.raises(ValueError, match="finite and >= 0"):
        MarginCalibrationLoss(margins=margins)


@pytest.mark.parametrize("margins", ["0", [0.1], [0.1, 0.2, 0.3], {"negative": 0}])
def test_margins_in_no_known_form(margins):
    with pytest.raises(ValueError, match="a pair"):
        MarginCalibrationLoss(margins=margins)


def test_forms_of_margins():
    logits, labels = logits_and_labels(1, 2, 4)
    per_class = MarginCalibrationLoss(margins=([0.5, 0.5], [0.25, 0.25]))(logits, labels)
    for margins in ((0.5, 0.25), [0.5, [0.25, 0.25]], torch.tensor([[0.5, 0.5], [0.25, 0.25]])):
        torch.testing.assert_close(MarginCalibrationLoss(margins=margins)(logits, labels), per_class)


@pytest.mark.parametrize("weight", [-1.0, torch.nan, [1.0, torch.inf], []])
def test_weights(weight):
    for name in ("positive_weight", "negative_weight"):
        with pytest.raises(ValueError, match=f"{name} must be finite and >= 0"):
            MarginCalibrationLoss(margins=0.0, **{name: weight})


def test_unknown_words():
    with pytest.raises(ValueError, match="negative_weight must be 'mean' or numbers, found 'sum'"):
        MarginCalibrationLoss(margins=0.0, negative_weight="sum")
    with pytest.raises(ValueError, match="base must be 2 or 'e', found 10"):
        MarginCalibrationLoss(margins=0.0, base=10)
    with pytest.raises(TypeError, match="positive_weight must be a number"):
        MarginCalibrationLoss(margins=0.0, positive_weight="mean")
    with pytest.raises(TypeError, match="ignore_index must be an integer"):
        MarginCalibrationLoss(margins=0.0, ignore_index=255.0)
    with pytest.raises(ValueError, match="global_mean=True needs reduction='mean'"):
        MarginCalibrationLoss(margins=0.0, global_mean=True, reduction="sum")


def test_input_is_no_logits():
    with pytest.raises(TypeError, match=r"torch\.int64.*floating-point logits"):
        MarginCalibrationLoss(margins=0.0)(torch.zeros(1, 2, 3, dtype=torch.long), torch.zeros(1, 1, 3))
    with pytest.raises(ValueError, match=r"\(3,\): expected logits"):
        MarginCalibrationLoss(margins=0.0)(torch.zeros(3), torch.zeros(3))
    with pytest.raises(TypeError, match=r"expected a torch.Tensor, found ndarray"):
        MarginCalibrationLoss(margins=0.0)(torch.zeros(1, 2, 3), np.zeros((1, 1, 3)))
