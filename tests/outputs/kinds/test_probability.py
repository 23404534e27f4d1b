"""Foreground probability: one minus the softmax of the background, by NumPy in double precision."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from monai.data import MetaTensor

from monai_margincal.outputs import MapsFromLogitsd, Outputs
from monai_margincal.outputs.kinds.probability import foreground_probability


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_equals_one_minus_the_softmax_of_the_background(classes, dtype):
    logits = torch.randn(classes, 4, 5, 3, generator=torch.Generator().manual_seed(0)).mul(5).to(dtype)
    exact = np.exp(logits.double().numpy())
    expected = 1 - exact[0] / exact.sum(axis=0)
    found = foreground_probability(logits)
    assert found.dtype == torch.float32
    assert found.shape == (1, 4, 5, 3)
    assert np.abs(found[0].numpy() - expected).max() < 1e-6


def test_tiny_probabilities_are_not_rounded_to_zero():
    assert foreground_probability(torch.tensor([[60.0], [0.0]])).item() == pytest.approx(np.exp(-60.0), rel=1e-4)


def test_half_is_where_the_decision_changes():
    logits = torch.randn(2, 50, 50, 2, generator=torch.Generator().manual_seed(1))
    assert torch.equal(foreground_probability(logits)[0] > 0.5, logits.argmax(0) == 1)


def test_place_in_space_and_the_logits_stay():
    logits = MetaTensor(torch.zeros(2, 3, 3, 3), affine=torch.diag(torch.tensor([2.0, 3, 4, 1])))
    items = MapsFromLogitsd("pred", Outputs("probability", "out"))({"pred": logits})
    assert torch.equal(items["probability"].affine, logits.affine)
    assert items["pred"] is logits


def test_one_channel_is_refused():
    with pytest.raises(ValueError, match=r"two or more classes.*\(1, 3, 3, 3\)"):
        foreground_probability(torch.zeros(1, 3, 3, 3))
