"""Cross-entropy against PyTorch's own, with a void label."""

from __future__ import annotations

import pytest
import torch

from monai_margincal.losses import CrossEntropyLoss


@pytest.mark.parametrize("void", [None, 255, 0, 2])
@pytest.mark.parametrize("channel", [True, False])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float32])
def test_values_and_gradients_are_those_of_pytorch(void, channel, dtype):
    torch.manual_seed(0)
    logits = torch.randn(2, 3, 5, 4, dtype=torch.float64, requires_grad=True)
    target = torch.randint(0, 3, (2, 5, 4))
    if void == 255:
        target[:, 0] = 255
    reference = logits.detach().clone().requires_grad_()
    expected = torch.nn.functional.cross_entropy(reference, target, ignore_index=-100 if void is None else void)
    expected.backward()
    loss = CrossEntropyLoss(void)(logits, (target[:, None] if channel else target).to(dtype))
    loss.backward()
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(logits.grad, reference.grad)


def test_an_ignored_voxel_changes_nothing_whatever_its_logits():
    target = torch.tensor([[[0, 1, 255]]])
    logits = torch.randn(1, 2, 3)
    expected = CrossEntropyLoss(255)(logits[..., :2], target[..., :2])
    logits[..., 2] = torch.nan
    logits.requires_grad_()
    loss = CrossEntropyLoss(255)(logits, target)
    loss.backward()
    torch.testing.assert_close(loss, expected)
    assert logits.grad[..., 2].tolist() == [[0, 0]]


def test_nothing_but_void_gives_zero_with_a_live_graph():
    logits = torch.randn(1, 2, 4, requires_grad=True)
    loss = CrossEntropyLoss(255)(logits, torch.full((1, 1, 4), 255))
    loss.backward()
    assert loss.item() == 0
    assert logits.grad.abs().sum() == 0


def test_half_precision_is_computed_in_single():
    logits = torch.randn(1, 3, 8).half()
    assert CrossEntropyLoss()(logits, torch.zeros(1, 1, 8)).dtype == torch.float32


def test_an_undeclared_label_is_named():
    with pytest.raises(ValueError, match=r"found the label value\(s\) 255, expected class ids \[0, 1\]"):
        CrossEntropyLoss()(torch.zeros(1, 2, 1), torch.tensor([[[255]]]))
