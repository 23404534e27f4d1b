"""Losses that are made of others."""

from __future__ import annotations

import pytest
import torch
from monai.losses import AsymmetricUnifiedFocalLoss

from monai_margincal.experiments import SoftmaxFirstLoss


def test_unified_focal_gets_probabilities():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 2, 5, 6, generator=generator)
    target = torch.randint(2, (2, 1, 5, 6), generator=generator)
    loss = AsymmetricUnifiedFocalLoss(to_onehot_y=True)
    assert float(SoftmaxFirstLoss(loss)(logits, target)) == pytest.approx(float(loss(logits.softmax(1), target)))
    # of logits it knows only which are above 1
    assert float(loss(logits, target)) != pytest.approx(float(loss(logits.softmax(1), target)))
