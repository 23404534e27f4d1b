"""What a study means over, and the bootstrap against what is known about it."""

from __future__ import annotations

import numpy as np
import pytest

from monai_margincal.experiments.scores import foreground_iou, foreground_mean, paired_comparison


def test_the_foreground_leaves_class_0_out_and_gives_1_to_a_class_seen_nowhere():
    matrices = np.array([[[8, 2, 0], [0, 10, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, 1], [0, 0, 0]]])
    np.testing.assert_allclose(foreground_iou(matrices), [(10 / 12 + 1) / 2, 0])
    np.testing.assert_allclose(foreground_mean(np.array([0.1, 0.2, 0.6])), 0.4)


def _runs(seeds: int, cases: int, quality: float, noise: float, seed: int) -> np.ndarray:
    """Two classes, 1000 voxels a case, of which about ``quality`` of 100 foreground ones are hit."""
    random = np.random.RandomState(seed)
    hit = np.clip(100 * quality + random.normal(0, noise, size=(seeds, cases)), 0, 100).round().astype(int)
    return np.stack([np.stack([np.full_like(hit, 890), np.full_like(hit, 10)], -1), np.stack([100 - hit, hit], -1)], -2)


def test_a_clear_difference_is_found_and_its_sign_turns_round():
    better, worse = _runs(5, 40, 0.8, 5, 0), _runs(5, 40, 0.7, 5, 1)
    forward, backward = paired_comparison(better, worse), paired_comparison(worse, better)
    assert forward.low > 0.05
    assert (forward.wins, forward.ties, forward.losses) == (5, 0, 0)
    assert forward.difference == pytest.approx(-backward.difference)
    assert (forward.low, forward.high) == pytest.approx((-backward.high, -backward.low))
    exact = np.mean([foreground_iou(a.sum(0)) - foreground_iou(b.sum(0)) for a, b in zip(better, worse, strict=True)])
    assert forward.difference == pytest.approx(exact)


def test_no_difference_is_a_tie_with_an_interval_of_width_zero():
    runs = _runs(3, 10, 0.7, 5, 0)
    same = paired_comparison(runs, runs)
    assert (same.difference, same.low, same.high, same.ties, same.case_wins) == (0, 0, 0, 3, 0)


def test_the_interval_covers_what_it_should():
    """Draw the same two populations again and again: the interval must hold the true difference about 95 % of the time."""
    truth = paired_comparison(_runs(50, 400, 0.75, 8, 0), _runs(50, 400, 0.73, 8, 1), resamples=2).difference
    inside = 0
    for i in range(60):
        found = paired_comparison(_runs(6, 40, 0.75, 8, 2 * i + 2), _runs(6, 40, 0.73, 8, 2 * i + 3), resamples=200)
        inside += found.low <= truth <= found.high
    assert inside >= 51  # drawing cases and seeds together is wider than needed here, never narrower


def test_the_same_call_gives_the_same_interval():
    a, b = _runs(3, 10, 0.8, 5, 0), _runs(3, 10, 0.7, 5, 1)
    assert paired_comparison(a, b) == paired_comparison(a, b)


def test_refuses_what_is_not_paired():
    with pytest.raises(ValueError, match=r"shapes \(3, 10, 2, 2\) and \(3, 9, 2, 2\)"):
        paired_comparison(_runs(3, 10, 0.8, 5, 0), _runs(3, 9, 0.8, 5, 0))
