"""What the margin calibration loss gives: the golden vectors, a literal transcription of the paper, its own identities."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from losses.golden import CASES, IDS, has_proper_margins, numbers, tensor
from losses.oracle import oracle
from losses.problems import gradient, logits_and_labels

from monai_margincal import ClassMargins, MarginCalibrationLoss, class_margins


@pytest.mark.parametrize("case", [c for c in CASES if has_proper_margins(c)], ids=lambda c: c["id"])
def test_golden_through_the_module(case):
    logits, labels = tensor(case["logits"]), torch.tensor(case["labels"])
    margins = ClassMargins(numbers(case["rho_0k"]), numbers(case["rho_k0"]))
    loss = MarginCalibrationLoss(
        margins=margins, base=2, negative_weight=1.0, ignore_index=case["ignore_index"]
    ).double()
    expected = case["recommended_loss"] if case["paper_loss"] is None else case["paper_loss"]
    assert abs(loss(logits, labels).item() - expected) <= 1e-12 * max(1.0, abs(expected))


@pytest.mark.parametrize(
    "name", ["class_absent_from_counts", "mu_negative", "mu_singular_exact", "single_class_c1", "n_k_equals_n"]
)
def test_golden_margins_that_turn_the_loss_around_are_refused(name):
    case = CASES[IDS.index(name)]
    with pytest.raises(ValueError, match=r"finite and >= 0|C >= 2 classes"):
        MarginCalibrationLoss(margins=(numbers(case["rho_0k"]), numbers(case["rho_k0"])))


@given(
    seed=st.integers(0, 2**31),
    channels=st.integers(1, 5),
    normalization=st.sampled_from(["sum", "counts"]),
    negative=st.sampled_from(["mean", 1.0, 0.3, "per class"]),
    background=st.booleans(),
    base=st.sampled_from(["e", 2]),
)
@settings(deadline=None, max_examples=40)
def test_literal_transcription_from_counts(seed, channels, normalization, negative, background, base):
    rng = np.random.default_rng(seed)
    classes = max(channels, 2)
    counts = rng.integers(50, 100_000, classes).tolist()
    positive = rng.uniform(0, 2, classes).tolist()
    negative = rng.uniform(0, 2, classes).tolist() if negative == "per class" else negative
    loss = MarginCalibrationLoss(
        include_background=background,
        class_counts=counts,
        tau=2.0,
        normalization=normalization,
        positive_weight=positive,
        negative_weight=negative,
        base=base,
    ).double()
    logits, labels = rng.normal(0, 3, (2, channels, 6)), rng.integers(0, classes, (2, 6))
    margins = class_margins(counts, tau=2.0, normalization=normalization)
    weights = [1 / classes] * classes if negative == "mean" else np.broadcast_to(negative, classes)
    expected, _, _ = oracle(
        logits,
        labels,
        margins.negative.tolist(),
        margins.positive.tolist(),
        weights,
        positive,
        base_e=base == "e",
        include_background=background,
    )
    assert loss(torch.tensor(logits), torch.tensor(labels)).item() == pytest.approx(expected.mean(), rel=1e-12)


def test_one_channel_equals_two():
    logits, labels = logits_and_labels(2, 1, 4, 5)
    both = torch.cat([torch.zeros_like(logits), logits], dim=1)
    loss = MarginCalibrationLoss(class_counts=[90, 10])
    one, two = loss(logits, labels), loss(both, labels)
    torch.testing.assert_close(one, two, rtol=0, atol=0)
    torch.testing.assert_close(loss(logits, labels.float()), two)  # a probability of 0 or 1


def test_base_e_is_base_2_of_scaled_logits():
    """log2(1 + 2^z) = ln(1 + e^(z ln 2)) / ln 2."""
    logits, labels = logits_and_labels(2, 3, 7)
    ln2 = float(np.log(2.0))
    margins = ClassMargins([0.1, 0.5, 1.0], [0.2, 0.3, 0.0])
    scaled = ClassMargins((margins.negative * ln2).tolist(), (margins.positive * ln2).tolist())
    base2 = MarginCalibrationLoss(margins=margins, base=2)(logits, labels)
    natural = MarginCalibrationLoss(margins=scaled, base="e")(logits * ln2, labels)
    torch.testing.assert_close(base2, natural / ln2)


def test_hard_one_hot_equals_indices():
    logits, labels = logits_and_labels(2, 4, 3, 5)
    one_hot = torch.nn.functional.one_hot(labels[:, 0], 4).movedim(-1, 1)
    loss = MarginCalibrationLoss(class_counts=[5000, 300, 200, 100])
    expected = loss(logits, labels)
    for dtype in (torch.float32, torch.int64, torch.uint8, torch.bool, torch.float16):
        torch.testing.assert_close(loss(logits, one_hot.to(dtype)), expected)


def test_printed_sum_raises_a_wrong_top_class_near_a_tie_from_five_classes_on():
    """The defect of the printed equation, and why 1/C is the default.

    Near a tie of a wrong top class t with the true class, dL/ds_t is about (4 - C)/2 for the printed sum: negative from C = 5
    on, so descent RAISES the wrong class. With 1/C it is positive.
    """
    for classes in range(3, 9):
        logits = torch.full((1, classes, 1), -1e-6, dtype=torch.float64)
        logits[0, 1] = 0.0  # t, on top by a hair
        logits[0, 0] = -1e-7  # the true class
        logits.requires_grad_()
        labels = torch.zeros(1, 1, 1, dtype=torch.long)
        printed = gradient(MarginCalibrationLoss(margins=0.0, negative_weight=1.0), logits, labels)[0, 1, 0].item()
        default = gradient(MarginCalibrationLoss(margins=0.0), logits, labels)[0, 1, 0].item()
        assert printed == pytest.approx((4 - classes) / 2, abs=1e-5)
        assert default > 0
        assert default == pytest.approx(3 / (2 * classes), abs=1e-5)
