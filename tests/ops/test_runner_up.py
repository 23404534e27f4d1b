"""The runner-up is found also where the largest logit exceeds the others by more than the dtype keeps of their differences."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from losses.oracle import oracle
from ops.ways import WAYS, loss_and_gradient

ways = pytest.mark.parametrize("way", WAYS)


def check(way, logits, target, dtype):
    """Value and gradient of logits (B, C, V) against the transcription."""
    classes = logits.shape[1]
    rng = np.random.default_rng(0)
    terms = [rng.uniform(0.1, 1, classes) for _ in range(4)]
    losses, slopes, _ = oracle(logits, target, *terms)
    loss, _, gradient = loss_and_gradient(
        way, torch.tensor(logits, dtype=dtype), torch.tensor(target), [torch.tensor(t) for t in terms], reduction="sum"
    )
    torch.testing.assert_close(loss.double(), torch.tensor(losses.sum()), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(gradient.double(), torch.tensor(slopes), rtol=1e-5, atol=1e-5)


@ways
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("form", ["index", "one value per class"])
def test_its_gradient_does_not_go_to_the_first_class(way, dtype, form):
    if way == "triton" and (dtype == torch.float64 or form != "index"):
        pytest.skip("the kernels leave these to the eager way")
    for power in (23, 24, 25, 30, 60, 90):
        logits = np.array([[[0.25, 1.0], [2.0**power, -1.0], [0.5, 2.0**power], [0.75, 1.5]]])
        target = np.array([[0, 3]])
        if form != "index":
            target = (target[:, None] == np.arange(4)[:, None]).astype(float)
        check(way, logits, target, dtype)


@ways
def test_a_tie_of_the_runners_up_goes_to_the_first(way):
    check(way, np.array([[[0.5, 1.0], [2.0**40, -1.0], [1.0, 2.0**40], [1.0, 1.0]]]), np.array([[0, 1]]), torch.float32)


@given(seed=st.integers(0, 2**31), classes=st.integers(3, 7), voxels=st.integers(1, 30), power=st.integers(-20, 95))
@settings(deadline=None, max_examples=60)
@ways
def test_random_distances(way, seed, classes, voxels, power):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2, (2, classes, voxels)).astype(np.float32).astype(float)
    tops = rng.integers(0, classes, (2, 1, voxels))
    np.put_along_axis(logits, tops, 2.0**power, axis=1)
    check(way, logits, rng.integers(0, classes, (2, voxels)), torch.float32)
