"""The cross-entropy of the hardest voxels, against a sort in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from monai_margincal.experiments import TopKCrossEntropyLoss


@pytest.mark.parametrize("share", [0.1, 0.35, 1.0])
@pytest.mark.parametrize("spatial", [(7, 6), (3, 4, 5)])
def test_is_the_mean_of_the_largest(share, spatial):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 3, *spatial, generator=generator)
    target = torch.randint(3, (2, 1, *spatial), generator=generator)
    probabilities = np.exp(logits.numpy()) / np.exp(logits.numpy()).sum(1, keepdims=True)
    losses = np.sort(-np.log(np.take_along_axis(probabilities, target.numpy(), 1)).ravel())[::-1]
    wanted = losses[: int(share * losses.size)].mean()
    assert float(TopKCrossEntropyLoss(share)(logits, target)) == pytest.approx(wanted, rel=1e-5)


def test_one_voxel_is_enough_and_easy_voxels_have_no_gradient():
    logits = torch.tensor([[[0.0, 9.0], [0.0, 0.0]]], requires_grad=True)
    TopKCrossEntropyLoss(0.1)(logits, torch.tensor([[[1, 0]]])).backward()
    assert logits.grad[..., 0].abs().min() > 0
    assert logits.grad[..., 1].abs().max() == 0


@pytest.mark.parametrize("share", [0.0, 1.5])
def test_refuses_other_shares(share):
    with pytest.raises(ValueError, match=f"share: found {share}, expected a number above 0 and up to 1"):
        TopKCrossEntropyLoss(share)
