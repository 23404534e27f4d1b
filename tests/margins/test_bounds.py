"""The IoU lower bound and Theorem 1, against literal NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from monai_margincal import (
    ClassMargins,
    class_margins,
    generalization_bound,
    miou_lower_bound,
    rho_margin_loss,
)
from monai_margincal.margins import BoundTerms, calibrated_log_loss


def literal_bound(logits, labels, margins):
    """Eq. 7 voxel by voxel."""
    classes = logits.shape[1]
    rows = np.moveaxis(logits, 1, -1).reshape(-1, classes)
    labels = labels.reshape(-1)
    n = len(labels)
    result = []
    for k in range(classes):
        missed = invented = 0.0
        for row, label in zip(rows, labels, strict=True):
            margin = row[k] - max(row[j] for j in range(classes) if j != k)
            if label == k:
                missed += min(1, max(0, 1 - margin / margins.positive[k].item()))
            else:
                invented += min(1, max(0, 1 + margin / margins.negative[k].item()))
        p = (labels == k).mean()
        result.append((p - missed / n) / (p + invented / n) if p + invented > 0 else 1.0)
    return np.array(result)


def iou(logits, labels):
    predicted = logits.argmax(1)
    both = lambda k: ((predicted == k) & (labels == k)).sum()  # noqa: E731
    either = lambda k: ((predicted == k) | (labels == k)).sum()  # noqa: E731
    return np.array([both(k) / either(k) if either(k) else 1.0 for k in range(logits.shape[1])])


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.floats(0.05, 3))
@settings(deadline=None, max_examples=30)
def test_bound_is_the_formula_and_below_the_iou(seed, classes, scale):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(2, classes, 3, 4)) * 2
    labels = rng.integers(0, classes, size=(2, 3, 4))
    margins = ClassMargins(rng.uniform(0.1, 1, classes) * scale, rng.uniform(0.1, 1, classes) * scale)
    terms = BoundTerms.from_logits(torch.from_numpy(logits), torch.from_numpy(labels), margins)
    bound = miou_lower_bound(terms)
    np.testing.assert_allclose(bound.per_class.numpy(), literal_bound(logits, labels, margins), rtol=1e-10)
    assert bound.value == pytest.approx(bound.per_class.mean().item())
    assert (bound.per_class.numpy() <= iou(logits, labels) + 1e-12).all()
    larger = {
        "base 2": lambda margin, rho: calibrated_log_loss(margin, rho, base=2),
        "base e over ln 2": lambda margin, rho: calibrated_log_loss(margin, rho) / math.log(2),
    }
    for name, surrogate in larger.items():
        terms = BoundTerms.from_logits(torch.from_numpy(logits), torch.from_numpy(labels), margins, surrogate=surrogate)
        assert bool((miou_lower_bound(terms).per_class <= bound.per_class + 1e-12).all()), name


def test_the_log_loss_of_base_e_promises_too_much_for_small_margins():
    """Voxels near a tie, half of them wrong: IoU 1/3. Below rho = ln(e - 1) base e takes an error for less than 1."""
    logits = torch.tensor([[[1e-9, 1e-9, 0.0, 0.0], [0.0, 0.0, 1e-9, 1e-9]]], dtype=torch.float64)
    labels = torch.tensor([[0, 1, 0, 1]])

    def bound(rho, surrogate):
        margins = ClassMargins([rho] * 2, [rho] * 2)
        return miou_lower_bound(BoundTerms.from_logits(logits, labels, margins, surrogate=surrogate)).value

    limit = math.log(math.e - 1)
    exact = bound(limit, rho_margin_loss)
    assert bound(limit + 1e-6, calibrated_log_loss) < exact < bound(limit - 1e-6, calibrated_log_loss)
    assert bound(limit - 1e-6, lambda margin, rho: calibrated_log_loss(margin, rho) / math.log(2)) < exact


def test_terms_add_up_over_batches():
    torch.manual_seed(0)
    logits, labels = torch.randn(4, 3, 5, dtype=torch.float64), torch.randint(0, 3, (4, 1, 5))
    margins = class_margins([80, 15, 5])
    whole = BoundTerms.from_logits(logits, labels, margins)
    parts = [BoundTerms.from_logits(logits[i : i + 1], labels[i : i + 1].to(torch.uint8), margins) for i in range(4)]
    total = parts[0] + parts[1] + parts[2] + parts[3]
    torch.testing.assert_close(miou_lower_bound(total).per_class, miou_lower_bound(whole).per_class)


def test_class_that_is_nowhere_scores_one():
    logits = torch.tensor([[[9.0], [0.0], [-9.0]]])
    bound = miou_lower_bound(BoundTerms.from_logits(logits, torch.tensor([[0]]), ClassMargins([1, 1, 1], [1, 1, 1])))
    assert bound.per_class.tolist() == [1, 1, 1]


def test_ignored_voxels_change_nothing():
    margins = class_margins([80, 20])
    logits = torch.randn(1, 2, 6)
    logits[..., 3:] = torch.nan
    target = torch.tensor([[0, 1, 0, 255, 255, 255]])
    with_ignored = BoundTerms.from_logits(logits, target, margins, ignore_index=255)
    without = BoundTerms.from_logits(logits[..., :3], target[:, :3], margins)
    assert torch.equal(with_ignored.false_negative, without.false_negative)
    assert torch.equal(with_ignored.voxels, without.voxels)


@pytest.mark.parametrize(
    ("target", "margins", "message"),
    [
        (torch.zeros(1, 4), ([1, 1, 1], [1, 1, 1]), "margins of 3 classes for logits of 2"),
        (
            torch.zeros(1, 5),
            ([1, 1], [1, 1]),
            r"shape \(1, 5\), .* expected class indices \(1, 1, 4\) or \(1, 4\)",
        ),
        (torch.tensor([[0, 1, 2, -1]]), ([1, 1], [1, 1]), r"value\(s\) -1, 2, expected class ids \[0, 1\]"),
        (torch.tensor([[0, 1, 0.7, 1]]), ([1, 1], [1, 1]), r"not integers: 0\.7, expected class ids \[0, 1\]"),
    ],
)
def test_bad_batches(target, margins, message):
    with pytest.raises(ValueError, match=message):
        BoundTerms.from_logits(torch.zeros(1, 2, 4), target, ClassMargins(*margins))


def test_no_voxel_no_bound():
    terms = BoundTerms.from_logits(
        torch.zeros(1, 2, 1), torch.tensor([[255]]), ClassMargins([1, 1], [1, 1]), ignore_index=255
    )
    with pytest.raises(ValueError, match="no voxel was counted"):
        miou_lower_bound(terms)


def literal_theorem(counts, negative, positive, complexity, m, eta):
    c, n = len(counts), sum(counts)
    f = complexity + max(*negative, *positive) / (4 * c) * math.sqrt(2 * m * math.log(2 * c / eta))
    terms = []
    for n_k, rho_0k, rho_k0 in zip(counts, negative, positive, strict=True):
        mu = rho_k0 / rho_0k
        numerator = math.sqrt(n - n_k) + math.sqrt(n_k) / mu
        terms.append(numerator / (n_k / (4 * c * f) * rho_0k - math.sqrt(n - n_k)))
    return terms


def test_theorem_where_it_says_something():
    counts, negative, positive = [10**12, 10**11], [2.0, 3.0], [1.0, 1.5]
    bound = generalization_bound(counts, ClassMargins(negative, positive), complexity=1.0, pixels_per_image=100)
    expected = literal_theorem(counts, negative, positive, 1.0, 100, 0.05)
    assert min(expected) > 0
    np.testing.assert_allclose(bound.per_class.numpy(), expected, rtol=1e-12)
    assert bound.value == pytest.approx(sum(expected) / 2)
    assert not bound.is_vacuous
    assert bool((bound.denominators > 0).all())


@pytest.mark.parametrize("tau", [1, 10])
def test_theorem_is_vacuous_at_the_papers_settings(tau):
    """2 % lesion in 2.3e8 voxels, images of 224 x 336 pixels, even for a network of no complexity at all."""
    counts = [225_400_000, 4_600_000]
    for normalization in ("sum", "counts"):
        margins = class_margins(counts, tau=tau, normalization=normalization)
        bound = generalization_bound(counts, margins, complexity=0.0, pixels_per_image=224 * 336)
        assert bound.is_vacuous
        assert bound.value == math.inf
        assert bool((bound.denominators < 0).any())


def test_a_bound_of_one_or_more_is_vacuous_too():
    counts = [10**8, 10**8]
    bound = generalization_bound(counts, ClassMargins([2.0, 2.0], [1e-4, 1e-4]), complexity=1.0, pixels_per_image=1)
    assert 1 <= bound.value < math.inf
    assert bound.is_vacuous


def test_absent_class_and_zero_margins_promise_nothing():
    with pytest.warns(UserWarning, match="no voxel"):
        margins = class_margins([90, 10, 0])
    assert generalization_bound([90, 10, 0], margins, 1.0, 10).per_class[2] == math.inf
    assert generalization_bound([90, 10], ClassMargins([0, 0], [0, 0]), 0.0, 10).is_vacuous


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"complexity": -1}, "complexity must be finite and >= 0, found -1"),
        ({"pixels_per_image": 0}, "pixels_per_image must be >= 1, found 0"),
        ({"eta": 1}, r"eta must be in \(0, 1\), found 1"),
        ({"counts": [1, 2, 3]}, "margins of 2 classes and counts of 3"),
        ({"counts": {0: 90, 5: 10}}, r"margins are of the ids \[0, 1\], counts of \[0, 5\]"),
        ({"counts": [0, 0]}, "nothing was counted"),
    ],
)
def test_bad_arguments(changes, message):
    arguments = {"counts": [90, 10], "margins": class_margins([90, 10]), "complexity": 1.0, "pixels_per_image": 10}
    with pytest.raises(ValueError, match=message):
        generalization_bound(**{**arguments, **changes})
