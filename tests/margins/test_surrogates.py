"""The margin and the two losses of a margin."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from monai_margincal import calibrated_log_loss, rho_margin_loss
from monai_margincal.margins import logit_margins

reals = st.floats(-50, 50)


@given(arrays(np.float64, array_shapes(min_dims=2, max_dims=4, min_side=2, max_side=4), elements=reals))
@settings(deadline=None, max_examples=40)
def test_logit_margins_against_numpy(logits):
    expected = np.stack(
        [logits[:, k] - np.delete(logits, k, axis=1).max(axis=1) for k in range(logits.shape[1])], axis=1
    )
    np.testing.assert_array_equal(logit_margins(torch.from_numpy(logits)).numpy(), expected)


def test_half_precision_is_widened_before_subtracting():
    logits = torch.tensor([[8.0, 7.96875]], dtype=torch.bfloat16)
    assert logit_margins(logits).dtype == torch.float32
    assert logit_margins(logits)[0, 0] == logits[0, 0].float() - logits[0, 1].float()


def test_one_channel_has_no_margin():
    with pytest.raises(ValueError, match=r"shape \(1, 1, 4\)"):
        logit_margins(torch.zeros(1, 1, 4))


@given(reals, st.floats(1e-3, 20))
@settings(deadline=None, max_examples=200)
def test_the_chain_of_bounds(margin, rho):
    """0-1 loss <= rho-margin loss <= rho-calibrated log-loss in base 2, and in base e over ln 2 or from its limit on."""
    tensor = torch.tensor(margin, dtype=torch.float64)
    ramp, smooth = float(rho_margin_loss(tensor, rho)), float(calibrated_log_loss(tensor, rho, base=2))
    assert (margin <= 0) <= ramp <= smooth + 1e-12
    assert smooth == pytest.approx(np.logaddexp2(0, rho - margin), rel=1e-14, abs=1e-300)
    natural = float(calibrated_log_loss(tensor, rho))
    assert natural == pytest.approx(np.logaddexp(0, rho - margin), rel=1e-14, abs=1e-300)
    assert ramp <= natural / math.log(2) + 1e-12
    if rho >= math.log(math.e - 1):
        assert ramp <= natural + 1e-12


def test_natural_log_bounds_the_margin_loss_only_above_its_limit():
    limit = math.log(math.e - 1)
    zero = torch.zeros((), dtype=torch.float64)
    assert calibrated_log_loss(zero, limit + 1e-6, base="e") > 1
    assert calibrated_log_loss(zero, limit - 1e-6, base="e") < 1
    assert calibrated_log_loss(zero, 1e-9, base=2) > 1


def test_base_change_is_a_change_of_units():
    margin = torch.linspace(-9, 9, 37, dtype=torch.float64)
    ln2 = math.log(2)
    torch.testing.assert_close(
        calibrated_log_loss(margin, 0.7, base=2),
        calibrated_log_loss(margin * ln2, 0.7 * ln2, base="e") / ln2,
        rtol=1e-14,
        atol=0,
    )


def test_rho_zero_is_the_zero_one_loss():
    assert rho_margin_loss(torch.tensor([-1.0, 0.0, 1e-9]), 0.0).tolist() == [1, 1, 0]


def test_rho_may_differ_per_element():
    rho = torch.tensor([0.0, 1.0])
    assert rho_margin_loss(torch.tensor([0.5, 0.5]), rho).tolist() == [0, 0.5]


@pytest.mark.parametrize("margin", [-1e30, 1e30, -6e4, 6e4])
def test_extreme_margins_are_finite(margin):
    value = calibrated_log_loss(torch.tensor(margin), 0.5)
    assert bool(torch.isfinite(value))
    assert float(value) == pytest.approx(max(-margin, 0), rel=1e-4)


@pytest.mark.parametrize("loss", [rho_margin_loss, calibrated_log_loss])
@pytest.mark.parametrize("rho", [-0.1, math.nan, math.inf])
def test_bad_rho(loss, rho):
    with pytest.raises(ValueError, match="rho must be finite and >= 0"):
        loss(torch.zeros(2), rho)


def test_bad_base():
    with pytest.raises(ValueError, match="base must be 2 or 'e', found 10"):
        calibrated_log_loss(torch.zeros(2), 1.0, base=10)
