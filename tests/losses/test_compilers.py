"""torch.compile, torch.export, deterministic algorithms, GradScaler: a training step with the loss in it."""

from __future__ import annotations

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

from monai_margincal import MarginCalibrationDiceLoss, MarginCalibrationLoss, MarginCalibrationTverskyLoss


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(4, 3, 1))


def batch(size=8, seed=0):
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(2, 1, size, size, generator=generator)
    labels = torch.randint(0, 3, (2, 1, size, size), generator=generator)
    labels[0, 0, 0] = 255
    return images, labels


def gradients(model, step, images, labels):
    model.zero_grad(set_to_none=True)
    value = step(images, labels)
    value.backward()
    return value.detach(), [p.grad.clone() for p in model.parameters()]


SETTINGS = {
    "mean": {"class_counts": [900, 90, 10], "ignore_index": 255},
    "sum": {"margins": 0.5, "ignore_index": 255, "reduction": "sum"},
    "global_mean": {"class_counts": [900, 90, 10], "ignore_index": 255, "global_mean": True},
    "without background": {"margins": 0.5, "ignore_index": 255, "include_background": False, "base": "e"},
}


def both_ways(settings, backend):
    model, loss = network(), MarginCalibrationLoss(**settings)

    def step(images, labels):
        return loss(model(images), labels)

    return model, loss, step, torch.compile(step, fullgraph=True, backend=backend)


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
def test_training_step_without_a_graph_break(settings):
    model, _, step, compiled = both_ways(settings, "aot_eager")
    images, labels = batch()
    expected, found = gradients(model, step, images, labels), gradients(model, compiled, images, labels)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_training_step_in_machine_code():
    model, _, step, compiled = both_ways(SETTINGS["mean"], "inductor")
    for size in (8, 12):
        images, labels = batch(size)
        expected, found = gradients(model, step, images, labels), gradients(model, compiled, images, labels)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_two_shapes_and_new_margins_compile_at_most_twice():
    """The second shape makes the graph dynamic; margins and weights that a handler sets compile nothing."""
    counter = CompileCounterWithBackend("aot_eager")
    model, loss, step, compiled = both_ways(SETTINGS["mean"], counter)
    for size in (8, 12, 16, 10):
        images, labels = batch(size)
        found = gradients(model, compiled, images, labels)
        torch.testing.assert_close(found, gradients(model, step, images, labels), rtol=1e-5, atol=1e-6)
        loss.margin_positive += 0.25
        loss.negative_weight.mul_(1.5)
    assert counter.frame_count <= 2


@pytest.mark.parametrize("form", ["soft", "class_mask", "none"])
def test_other_arguments(form):
    loss = MarginCalibrationLoss(margins=0.5, reduction="none" if form == "none" else "mean")
    logits, labels = torch.randn(2, 3, 6, requires_grad=True), torch.randint(0, 2, (2, 1, 6))
    target = torch.rand(2, 3, 6).softmax(1) if form == "soft" else labels
    mask = torch.tensor([[True, True, False], [True, True, True]]) if form == "class_mask" else None

    def step(x):
        return loss(x, target, mask).sum()

    (expected,) = torch.autograd.grad(step(logits), logits)
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    (found,) = torch.autograd.grad(compiled(logits), logits)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("compound", [MarginCalibrationDiceLoss, MarginCalibrationTverskyLoss])
@pytest.mark.parametrize("form", ["index", "soft", "class_mask"])
def test_compounds(compound, form):
    loss = compound(class_counts=[900, 90, 10], ignore_index=255)
    logits, labels = torch.randn(2, 3, 6, requires_grad=True), torch.randint(0, 2, (2, 1, 6))
    labels[0, 0, 0] = 255
    target = torch.rand(2, 3, 6).softmax(1) if form == "soft" else labels
    mask = torch.tensor([[True, True, False], [True, True, True]]) if form == "class_mask" else None

    def step(x):
        return loss(x, target, mask)

    (expected,) = torch.autograd.grad(step(logits), logits)
    (found,) = torch.autograd.grad(torch.compile(step, fullgraph=True, backend="aot_eager")(logits), logits)
    torch.testing.assert_close(found, expected)


def test_wrong_shapes_are_told_while_compiling():
    compiled = torch.compile(MarginCalibrationLoss(margins=0.0), fullgraph=True, backend="aot_eager")
    with pytest.raises(Exception, match=r"target has the shape \(2, 1, 5\), input has the shape \(2, 3, 6\)"):
        compiled(torch.randn(2, 3, 6), torch.zeros(2, 1, 5))


def test_wrong_labels_are_told_by_the_compiled_step():
    compiled = torch.compile(MarginCalibrationLoss(margins=0.0), fullgraph=True, backend="aot_eager")
    with pytest.raises(ValueError, match=r"target: found the label value\(s\) 7"):
        compiled(torch.randn(2, 3, 6), torch.full((2, 1, 6), 7))


@pytest.mark.parametrize("made", [MarginCalibrationLoss, MarginCalibrationDiceLoss, MarginCalibrationTverskyLoss])
def test_export(made):
    loss = made(class_counts=[900, 90, 10])
    logits, labels = torch.randn(2, 3, 6), torch.randint(0, 3, (2, 1, 6))
    program = torch.export.export(loss, (logits, labels))
    torch.testing.assert_close(program.module()(logits, labels), loss(logits, labels))


def test_deterministic_algorithms():
    logits, labels = torch.randn(2, 3, 50, requires_grad=True), torch.randint(0, 3, (2, 1, 50))
    loss = MarginCalibrationLoss(class_counts=[900, 90, 10])
    expected = torch.autograd.grad(loss(logits, labels), logits)
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        found = torch.autograd.grad(loss(logits, labels), logits)
        soft = torch.nn.functional.one_hot(labels[:, 0], 3).movedim(-1, 1).float()
        torch.testing.assert_close(torch.autograd.grad(loss(logits, soft), logits), expected)
    finally:
        torch.use_deterministic_algorithms(before)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_gradient_scaler():
    """AMP in float16: an overflowing scale is backed off, and the steps that are taken are finite."""
    model, loss = network(), MarginCalibrationLoss(class_counts=[900, 90, 10], ignore_index=255)
    scaler, optimizer = torch.amp.GradScaler("cpu", init_scale=2.0**40), torch.optim.SGD(model.parameters(), 0.1)
    images, labels = batch()
    values = []
    for _ in range(30):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.float16):
            value = loss(model(images), labels)
        assert value.dtype == torch.float32
        scaler.scale(value).backward()
        scaler.step(optimizer)
        scaler.update()
        values.append(value.item())
    assert scaler.get_scale() < 2.0**40
    assert all(torch.isfinite(p).all() for p in model.parameters())
    assert values[-1] < values[0]
