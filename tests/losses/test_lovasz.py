"""Lovász-softmax against the definition: the Lovász extension of the Jaccard loss, set by set."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from monai.data import MetaTensor
from monai.losses import DeepSupervisionLoss

from monai_margincal import LovaszSoftmaxLoss


def jaccard_loss(foreground, mistakes):
    """1 - IoU of the prediction that is wrong exactly at ``mistakes``; 0/0 counts as IoU 1."""
    predicted = foreground ^ mistakes
    union = (foreground | predicted).sum()
    return 0.0 if union == 0 else 1 - (foreground & predicted).sum() / union


def definition(probabilities, labels, classes):
    """Eq. 8 with set functions, (V, C) and (V,)."""
    losses = []
    for k in classes:
        foreground = labels == k
        errors = np.where(foreground, 1 - probabilities[:, k], probabilities[:, k])
        order = np.argsort(-errors, kind="stable")
        value, mistakes, before = 0.0, np.zeros(len(labels), bool), 0.0
        for i in order:
            mistakes[i] = True
            now = jaccard_loss(foreground, mistakes)
            value += errors[i] * (now - before)
            before = now
        losses.append(value)
    return np.mean(losses) if losses else 0.0


@given(
    seed=st.integers(0, 2**31),
    channels=st.integers(1, 4),
    classes=st.sampled_from(["present", "all", [1], [0, 1]]),
    per_image=st.booleans(),
    reduction=st.sampled_from(["none", "mean", "sum"]),
    ignored=st.sampled_from([0.0, 0.3, 0.9]),
    form=st.sampled_from(["index", "one-hot"]),
)
@settings(deadline=None, max_examples=80)
def test_definition(seed, channels, classes, per_image, reduction, ignored, form):
    rng = np.random.default_rng(seed)
    number = max(channels, 2)
    logits = rng.normal(0, 2, (3, channels, 5))
    labels = rng.integers(0, number, (3, 5))
    void = rng.random((3, 5)) < ignored
    both = np.concatenate([np.zeros_like(logits), logits], 1) if channels == 1 else logits
    probabilities = np.exp(both) / np.exp(both).sum(1, keepdims=True)
    groups = [[b] for b in range(3)] if per_image else [[0, 1, 2]]
    expected, seen = [], []
    for group in groups:
        p = np.concatenate([probabilities[b].T[~void[b]] for b in group])
        y = np.concatenate([labels[b][~void[b]] for b in group])
        wanted = {"present": sorted(set(y.tolist())), "all": range(number)}.get(str(classes), classes)
        expected.append(definition(p, y, wanted) if len(y) else 0.0)
        seen.append(len(y) > 0)
    target = torch.tensor(np.where(void, 255, labels))
    if form == "one-hot" and channels > 1:
        target = torch.tensor(np.where(void[:, None], 255, labels[:, None] == np.arange(number)[:, None]))
    loss = LovaszSoftmaxLoss(classes=classes, per_image=per_image, ignore_index=255, reduction=reduction)
    tensor = torch.tensor(logits, requires_grad=True)
    value = loss(tensor, target)
    if reduction == "none":
        assert value.shape == (len(groups), 1, 1)
        np.testing.assert_allclose(value.detach().numpy().ravel(), expected, atol=1e-12)
    else:
        total = sum(expected) / (max(sum(seen), 1) if reduction == "mean" else 1)
        assert value.item() == pytest.approx(total, abs=1e-12)
    value.sum().backward()
    assert (tensor.grad.numpy()[np.broadcast_to(void[:, None], logits.shape)] == 0).all()


def test_gradient():
    torch.manual_seed(0)
    labels = torch.randint(0, 3, (2, 1, 4))
    labels[0, 0, 0] = 9
    logits = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(LovaszSoftmaxLoss(ignore_index=9), (logits, labels))


def test_is_the_jaccard_loss_for_certain_predictions():
    labels = torch.tensor([[[0, 0, 1, 1, 1, 2]]])
    predicted = torch.tensor([[0, 1, 1, 1, 0, 2]])
    logits = torch.nn.functional.one_hot(predicted, 3).movedim(-1, 1) * 200.0
    assert LovaszSoftmaxLoss()(logits, labels).item() == pytest.approx(np.mean([1 - 1 / 3, 1 - 2 / 4, 0]))


@pytest.mark.parametrize("classes", ["present", "all", [1]])
@pytest.mark.parametrize("per_image", [True, False])
@pytest.mark.parametrize("target", [255, 0])
def test_all_void_and_all_background(classes, per_image, target):
    """bermanmaxim/LovaszSoftmax/pull/14, ChenHongruixuan/ChangeMamba/issues/26: a list or an empty tensor; backward failed."""
    logits = torch.randn(2, 3, 4, requires_grad=True)
    if target == 255:
        logits = logits.detach().fill_(torch.nan).requires_grad_()
    value = LovaszSoftmaxLoss(classes=classes, per_image=per_image, ignore_index=255)(
        logits, torch.full((2, 1, 4), target)
    )
    assert value.shape == ()
    value.backward()
    assert torch.isfinite(logits.grad).all()
    if target == 255:
        assert value.item() == 0
        assert (logits.grad == 0).all()


def test_absent_classes_are_left_alone():
    """bermanmaxim/LovaszSoftmax/issues/20: absent classes included gave mIoU .003 instead of .76."""
    logits, labels = torch.randn(1, 4, 30), torch.randint(0, 2, (1, 1, 30))
    three = LovaszSoftmaxLoss(classes=[0, 1])(logits, labels)
    torch.testing.assert_close(LovaszSoftmaxLoss()(logits, labels), three)
    assert LovaszSoftmaxLoss(classes="all")(logits, labels) != three


def test_background_only_crops_do_not_hold_the_network_at_one_half():
    """bermanmaxim/LovaszSoftmax/issues/26: half of the crops are empty; after 200 steps background is certain."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(4, 2, 1))
    images, labels = torch.randn(8, 1, 12, 12) * 0.1, torch.zeros(8, 1, 12, 12, dtype=torch.long)
    labels[:4, :, 3:8, 3:8] = 1
    images += labels
    loss, optimizer = LovaszSoftmaxLoss(), torch.optim.Adam(network.parameters(), 0.02)
    for step in range(200):
        optimizer.zero_grad()
        loss(network(images[step % 8][None]), labels[step % 8][None]).backward()
        optimizer.step()
    background = network(images).softmax(1)[:, :1]
    assert background[labels == 0].mean() > 0.9
    assert background[labels == 1].mean() < 0.5


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype):
    logits, labels = torch.randn(2, 3, 50).to(dtype), torch.randint(0, 3, (2, 1, 50))
    value = LovaszSoftmaxLoss()(logits, labels)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, LovaszSoftmaxLoss()(logits.float(), labels))
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(LovaszSoftmaxLoss()(logits, labels), value)


def test_steps_are_exact_beyond_float32_integers():
    """Differences of Jaccard losses would be 0 or noise here."""
    foreground = torch.zeros(1 << 20, dtype=torch.bool)
    foreground[1::2] = True
    from monai_margincal.losses.lovasz import _jaccard_steps

    steps32, steps64 = _jaccard_steps(foreground, torch.float32), _jaccard_steps(foreground, torch.float64)
    torch.testing.assert_close(steps32.double(), steps64, rtol=1e-6, atol=0)
    assert steps64.sum().item() == pytest.approx(1.0, rel=1e-12)


def test_in_monai():
    logits, labels = torch.randn(2, 3, 8, 8), torch.randint(0, 3, (2, 1, 8, 8)).float()
    assert type(LovaszSoftmaxLoss()(MetaTensor(logits), MetaTensor(labels))) is torch.Tensor
    assert torch.isfinite(DeepSupervisionLoss(LovaszSoftmaxLoss())([logits, logits[..., ::2, ::2]], labels))
    assert repr(LovaszSoftmaxLoss(classes=[1])).startswith("LovaszSoftmaxLoss(classes=(1,), per_image=False")


@pytest.mark.parametrize("classes", ["presence", [], [0, 0], [-1], [0.5], [True]])
def test_classes(classes):
    with pytest.raises(ValueError, match="classes must be 'present', 'all' or a list"):
        LovaszSoftmaxLoss(classes=classes)


def test_targets():
    logits = torch.randn(1, 3, 4)
    with pytest.raises(ValueError, match=r"classes lists \[3\].*\(1, 3, 4\)"):
        LovaszSoftmaxLoss(classes=[0, 3])(logits, torch.zeros(1, 1, 4))
    with pytest.raises(ValueError, match=r"label value\(s\) 255, expected class ids \[0, 1, 2\]"):
        LovaszSoftmaxLoss()(logits, torch.full((1, 1, 4), 255))
    with pytest.raises(ValueError, match=r"soft labels \(4 voxel\(s\)"):
        LovaszSoftmaxLoss()(logits, torch.full((1, 3, 4), 1 / 3))
    with pytest.raises(ValueError, match="avg"):
        LovaszSoftmaxLoss(reduction="avg")
