"""The margin loss with the sums of an overlap loss: against NumPy, and what every operation of its kind has to do."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from ops.memory import peak_allocation
from ops.overlap_ways import WAYS, sums_and_gradient
from ops.ways import SINGLE, terms

from monai_margincal.ops import margin_calibration, margin_overlap

ways = pytest.mark.parametrize("way", WAYS)
forms = pytest.mark.parametrize("form", ["index", "one value per class"])


def expected_sums(logits, shares, valid, annotated, *, squared, minimum):
    """Voxel by voxel; logits and shares (B, C, V), valid (B, V), annotated (B, C)."""
    cases, classes, voxels = logits.shape
    sums = np.zeros((cases, 3, classes))
    for b in range(cases):
        competing = np.flatnonzero(annotated[b])
        for i in range(voxels):
            if not valid[b, i] or len(competing) < 2:
                continue
            exponents = np.exp(logits[b, competing, i] - logits[b, competing, i].max())
            for k, p in zip(competing, exponents / exponents.sum(), strict=True):
                y = shares[b, k, i]
                hit = (p + y - abs(p - y)) / 2 if minimum else p * y
                sums[b, :, k] += (hit, p * p, y * y) if squared else (hit, p, y)
    return sums


@st.composite
def problems(draw, forms=(False, True)):
    cases, channels, voxels = draw(st.integers(1, 3)), draw(st.integers(1, 5)), draw(st.integers(1, 9))
    classes = max(channels, 2)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    logits = (
        rng.normal(0, draw(st.sampled_from([0.1, 3.0, 30.0])), (cases, channels, voxels))
        .astype(np.float32)
        .astype(float)
    )
    annotated = rng.random((cases, classes)) < draw(st.sampled_from([0.6, 1.0]))
    valid = rng.random((cases, voxels)) < draw(st.sampled_from([0.5, 1.0]))
    labels = np.array([rng.choice(np.flatnonzero(row) if row.any() else [0], voxels) for row in annotated])
    shares = (labels[:, None] == np.arange(classes)[:, None]).astype(float)
    soft = draw(st.sampled_from(forms)) and channels > 1
    if soft:
        shares = rng.random((cases, classes, voxels)) * annotated[:, :, None] + 0.01 * shares
        shares /= shares.sum(1, keepdims=True)
    target = np.where(valid[:, None], shares, 255.0) if soft else np.where(valid, labels, 255)
    options = {
        "squared": draw(st.booleans()),
        "class_mask": None if annotated.all() else torch.tensor(annotated),
        "ignore_index": None if valid.all() else 255,
    }
    options["minimum"] = soft and not options["squared"] and draw(st.booleans())
    return logits, torch.tensor(target), shares, valid, annotated, options


@pytest.mark.parametrize("way", [way for way in WAYS if way != "triton"])
@given(problem=problems())
@settings(deadline=None, max_examples=100)
def test_literal_transcription(way, problem):
    check_against_numpy(way, problem)


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # NumPy's, in voxels that are masked out
@given(problem=problems(forms=(False,)))
@settings(deadline=None, max_examples=25)
def test_literal_transcription_of_the_kernels(problem):
    check_against_numpy("triton", problem)


def check_against_numpy(way, problem):
    dtype, tolerance = (torch.float32, 2e-6) if way in SINGLE else (torch.float64, 1e-12)
    logits, target, shares, valid, annotated, options = problem
    oracle_logits = np.concatenate([0 * logits, logits], axis=1) if logits.shape[1] == 1 else logits
    expected = expected_sums(
        oracle_logits, shares, valid, annotated, squared=options["squared"], minimum=options["minimum"]
    )
    values = [one.double() for one in terms(max(logits.shape[1], 2))]
    logits = torch.tensor(logits, dtype=dtype)
    loss, count, sums, counted, _ = sums_and_gradient(way, logits, target, values, **options)
    torch.testing.assert_close(sums, torch.tensor(expected), rtol=tolerance, atol=tolerance)
    counts = (valid * (annotated.sum(1) >= 2)[:, None]).sum(1)
    assert counted.tolist() == counts.tolist()
    assert count == counts.sum()
    del options["squared"], options["minimum"]
    alone, _ = margin_calibration(logits, target, *values, **options)
    torch.testing.assert_close(loss, alone, rtol=tolerance, atol=0)


@forms
@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("options", [{}, {"squared": True}, {"minimum": True}, {"with_margin": False}])
def test_gradcheck(channels, form, options):
    generator = torch.Generator().manual_seed(channels)
    classes = max(channels, 2)
    logits = torch.randn(2, channels, 3, 2, dtype=torch.float64, generator=generator, requires_grad=True)
    values = [torch.rand(classes, dtype=torch.float64, generator=generator) for _ in range(4)]
    if form == "index":
        target = torch.randint(0, classes, (2, 3, 2), generator=generator)
    else:
        target = torch.rand(2, classes, 3, 2, dtype=torch.float64, generator=generator).softmax(1)
        target = target[:, 1:] if channels == 1 else target
    target[0, ..., 0, 0] = 7

    def function(x):
        loss, _, sums, _ = margin_overlap(x, target, *values, ignore_index=7, **options)
        return loss, sums

    assert torch.autograd.gradcheck(function, logits)


@pytest.mark.parametrize("way", ["eager", "operator"])
def test_second_derivative_is_refused(way):
    logits = torch.randn(1, 3, 4, requires_grad=True)
    loss, _, sums, _ = margin_overlap(logits, torch.zeros(1, 4, dtype=torch.long), *terms(3))
    if way == "operator":
        loss, _, sums, _ = torch.ops.margincal.margin_overlap(
            logits, torch.zeros(1, 4, dtype=torch.long), *terms(3), None, False, True, None, "mean", False, "", "eager",
            False, False, True,
        )  # fmt: skip
    (gradient,) = torch.autograd.grad(loss + sums[0, 0].sum(), logits, create_graph=True)
    with pytest.raises(RuntimeError, match=r"no second derivative|no autograd formula"):
        gradient.sum().backward()


def test_backward_twice_through_a_retained_graph():
    logits = torch.randn(2, 3, 5, requires_grad=True)
    loss, _, sums, _ = margin_overlap(logits, torch.randint(0, 3, (2, 5)), *terms(3))
    total = loss + sums[:, 0].sum()
    (first,) = torch.autograd.grad(total, logits, retain_graph=True, grad_outputs=torch.tensor(3.0))
    kept = first.clone()
    (second,) = torch.autograd.grad(total, logits, retain_graph=True)
    torch.testing.assert_close(first, kept, rtol=0, atol=0)  # what was given away is not touched again
    torch.testing.assert_close(second * 3, first)


@ways
@forms
@pytest.mark.parametrize("layout", ["channels last", "cropped", "transposed", "expanded"])
@pytest.mark.parametrize("elements", [7, 40, 65536])
def test_strides_and_block_sizes(monkeypatch, layout, elements, way, form):
    """Any view gives what its contiguous copy gives, however it is cut into blocks."""
    if way == "triton" and (form != "index" or elements != 40):
        pytest.skip("the kernels take class indices, and cut them in one way")
    base = torch.randn(3, 3, 6, 8, 5)
    if layout == "channels last":
        logits = base.contiguous(memory_format=torch.channels_last_3d)
    elif layout == "cropped":
        logits = base[:, :, 1:5, 2:7, 1:4]
    elif layout == "transposed":
        logits = base.transpose(2, 4)
    else:
        logits = base[:, :, :1].expand(-1, -1, 6, -1, -1)
    target = torch.randint(0, 3, (3, 1, *logits.shape[2:]))
    if form != "index":
        target = torch.nn.functional.one_hot(target[:, 0], 3).movedim(-1, 1).float()
    target[..., 0] = 255
    target = target.transpose(2, 3).contiguous().transpose(2, 3)
    values = terms(3)
    expected = sums_and_gradient("eager", logits.contiguous(), target.contiguous(), values, ignore_index=255)
    monkeypatch.setattr("monai_margincal.ops.voxel_blocks._ELEMENTS_PER_THREAD", elements)
    found = sums_and_gradient(way, logits, target, values, ignore_index=255)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@ways
@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 3, 0), (5, 3)])
def test_empty_and_pointwise(shape, way):
    if way == "triton" and 0 in shape:
        pytest.skip("the kernels leave empty logits to the eager way")
    target = torch.zeros(shape[0], *shape[2:], dtype=torch.long)
    loss, count, sums, counted, gradient = sums_and_gradient(way, torch.randn(shape), target, terms(3))
    assert count == target.numel() == counted.sum() == sums[:, 2].sum()
    assert gradient.shape == shape
    assert (loss.item() == 0) == (count == 0)


@ways
def test_repeatable_bit_by_bit(way):
    logits, target, values = torch.randn(2, 5, 40, 40), torch.randint(0, 5, (2, 40, 40)), terms(5)
    first, second = (sums_and_gradient(way, logits, target, values) for _ in range(2))
    torch.testing.assert_close(first, second, rtol=0, atol=0)


@forms
def test_ways_agree(form):
    logits, target, values = torch.randn(2, 5, 40, 40), torch.randint(0, 5, (2, 40, 40)), terms(5)
    if form != "index":
        target = torch.nn.functional.one_hot(target, 5).movedim(-1, 1)
    ways_of_form = [way for way in WAYS if form == "index" or way != "triton"]
    first, *others = (sums_and_gradient(way, logits, target, values) for way in ways_of_form)
    for other in others:
        torch.testing.assert_close(other, first, rtol=2e-6, atol=2e-6)


def test_infinite_incoming_gradients_leave_ignored_voxels_alone():
    logits, target = torch.randn(2, 3, 6, requires_grad=True), torch.randint(0, 3, (2, 6))
    target[:, 2] = 255
    loss, _, sums, _ = margin_overlap(logits, target, *terms(3), ignore_index=255)
    for part in (loss, sums.sum()):
        (gradient,) = torch.autograd.grad(part, logits, torch.tensor(torch.inf, dtype=part.dtype), retain_graph=True)
        assert (gradient[:, :, 2] == 0).all()


def test_reduction_none():
    with pytest.raises(ValueError, match=r"reduction='none' has no meaning for sums over voxels"):
        margin_overlap(torch.randn(1, 3, 4), torch.zeros(1, 4), *terms(3), reduction="none")


def test_registered_operator():
    """Schema, fake kernels and autograd registration, by torch's own checks."""
    logits = torch.randn(2, 3, 4, requires_grad=True)
    for target in (torch.randint(0, 3, (2, 4)), torch.rand(2, 3, 4).softmax(1)):
        arguments = (logits, target, *[torch.rand(3)] * 4, None, False, True, None, "mean", False, "", "eager")
        torch.library.opcheck(torch.ops.margincal.margin_overlap.default, (*arguments, False, False, True))


def test_no_full_size_temporary():
    """Beside the logits there is the gradient, and little else."""
    logits = torch.randn(1, 16, 64, 64, 64, requires_grad=True)  # 16 MiB
    target = torch.randint(0, 16, (1, 1, 64, 64, 64), dtype=torch.uint8)
    values = terms(16)

    def step(x, y, options):
        loss, _, sums, _ = margin_overlap(x, y, *values[: x.shape[1]], **options)
        (loss + sums[:, 0].sum()).backward()

    size = logits.numel() * 4
    for options in ({}, {"ignore_index": 255}, {"with_margin": False}, {"squared": True}):
        peak = peak_allocation(lambda options=options: step(logits, target, options))
        logits.grad = None
        assert peak <= 1.3 * size, f"{options}: peak of {peak / size:.2f} times the logits beside them"


@pytest.mark.slow
def test_counts_beyond_what_float32_can_tell():
    """2^24 + 1 is no float32; the probabilities of as many voxels add up all the same."""
    voxels = 2**25 + 3
    logits = torch.zeros(1, 2, 1).expand(1, 2, voxels)
    target = torch.zeros(1, 1, 1, dtype=torch.uint8).expand(1, 1, voxels)
    _, count, sums, counted = margin_overlap(logits, target, *terms(2), with_margin=False)
    assert count == counted == voxels
    assert sums.tolist() == [[[voxels / 2, 0.0], [voxels / 2, voxels / 2], [voxels, 0.0]]]
