"""Buffers, devices, copies and state of the loss module: what users reported of other losses."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from losses.oracle import oracle
from losses.problems import logits_and_labels

from monai_margincal import ClassCounts, MarginCalibrationLoss, class_margins

BUFFERS = ("margin_negative", "margin_positive", "negative_weight", "positive_weight")


def make(**settings_):
    return MarginCalibrationLoss(class_counts=ClassCounts([98765, 1234, 56], names=["a", "b", "c"]), **settings_)


def test_buffers():
    """Project-MONAI/MONAI/issues/8866, /8819, pull/8872."""
    loss = make()
    assert tuple(loss.state_dict()) == BUFFERS
    assert not list(loss.parameters())
    assert all(not b.requires_grad and b.dtype == torch.float32 and b.shape == (3,) for b in loss.buffers())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_keeps_float32(dtype):
    loss = make()
    before = {name: buffer.clone() for name, buffer in loss.named_buffers()}
    for moved in (copy.deepcopy(loss).to(dtype), torch.nn.Sequential(copy.deepcopy(loss)).to(dtype=dtype)[0]):
        for name, buffer in moved.named_buffers():
            assert buffer.dtype == torch.float32
            assert torch.equal(buffer, before[name])
    assert copy.deepcopy(loss).half().float().margin_positive.dtype == torch.float32


def test_double_gives_the_margins_as_computed():
    loss = make().half().double()
    exact = class_margins([98765, 1234, 56])
    assert torch.equal(loss.margin_negative, exact.negative)
    assert torch.equal(loss.margin_positive, exact.positive)
    assert torch.equal(loss.negative_weight, torch.full((3,), 1 / 3, dtype=torch.float64))
    changed = make()
    changed.margin_negative[1] = 7.0
    assert changed.double().margin_negative[1] == 7.0


def test_copies_and_state():
    loss, other = make(), MarginCalibrationLoss(class_counts=[5, 5, 5])
    logits, labels = logits_and_labels(1, 3, 5)
    expected = loss(logits, labels)
    for same in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert torch.equal(same(logits, labels), expected)
        assert repr(same) == repr(loss)
    other.load_state_dict(loss.state_dict(), strict=True)
    assert torch.equal(other(logits, labels), expected)
    with pytest.raises(RuntimeError, match="size mismatch for margin_negative"):
        MarginCalibrationLoss(class_counts=[5, 5]).load_state_dict(loss.state_dict())


def test_meta_device():
    loss = make().to("meta")
    assert all(buffer.is_meta for buffer in loss.buffers())
    logits = torch.randn(2, 3, 4, device="meta", requires_grad=True)
    value = loss(logits, torch.zeros(2, 1, 4, dtype=torch.long, device="meta"))
    value.backward()
    assert value.shape == ()
    assert logits.grad.shape == logits.shape
    assert "margin_negative=..." in repr(loss)


def test_handler_changes_margins_between_steps():
    loss = make()
    logits, labels = logits_and_labels(1, 3, 5)
    before = loss(logits, labels)
    before.backward()
    loss.margin_positive += 1.0
    loss.negative_weight = torch.tensor([1.0, 2.0, 3.0])
    after = loss(logits, labels)
    expected, _, _ = oracle(
        logits.detach().numpy(),
        labels[:, 0].numpy(),
        loss.margin_negative.tolist(),
        loss.margin_positive.tolist(),
        [1.0, 2.0, 3.0],
        [1.0] * 3,
    )
    assert after.item() == pytest.approx(expected.mean(), rel=1e-5)
    loss.margin_positive[1] = -1.0
    with pytest.raises(ValueError, match=r"margin_positive must be finite and >= 0, found"):
        loss(logits, labels)


def test_forward_changes_nothing():
    """Project-MONAI/MONAI/issues/8117, pull/8665."""
    loss, fresh = MarginCalibrationLoss(margins=0.5), MarginCalibrationLoss(margins=0.5)
    first, second = logits_and_labels(1, 3, 5), logits_and_labels(1, 5, 7, seed=1)
    in_order = loss(*first), loss(*second)
    reverse = fresh(*second), fresh(*first)
    assert torch.equal(in_order[0], reverse[1])
    assert torch.equal(in_order[1], reverse[0])
    assert loss.state_dict().keys() == fresh.state_dict().keys()


def test_repr_shows_margins_and_names():
    text = repr(make(ignore_index=255, include_background=False, base="e"))
    for part in ("classes=[a, b, c]", "margin_negative=[", "negative_weight=0.3333", "ignore_index=255", "base=e"):
        assert part in text
    assert "include_background=False" in text
    assert "ids=[0, 7]" in repr(MarginCalibrationLoss(class_counts={0: 90, 7: 10}))


def test_ids_with_gaps_in_messages():
    logits, _ = logits_and_labels(1, 2, 3)
    with pytest.raises(ValueError, match=r"\[0, 1\] \(0 for id 0, 1 for id 7\)"):
        MarginCalibrationLoss(class_counts={0: 90, 7: 10})(logits, torch.tensor([[[0, 7, 7]]]))
