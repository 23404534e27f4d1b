"""The fused operation against a literal transcription of the paper and against the golden vectors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from losses.golden import CASES, IDS, has_proper_margins, tensor
from losses.oracle import oracle
from ops.memory import peak_allocation
from ops.ways import SINGLE, WAYS, loss_and_gradient

from monai_margincal.ops import margin_calibration

ways = pytest.mark.parametrize("way", WAYS)


@ways
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_golden(case, way):
    # the kernels compute in float32; what the golden file allows there
    dtype, tolerance = (torch.float32, 2e-6) if way in SINGLE else (torch.float64, 1e-12)
    logits, labels = tensor(case["logits"]).to(dtype), torch.tensor(case["labels"])
    classes = logits.shape[1]
    one = torch.ones(max(classes, 2), dtype=torch.float64)
    margins = tensor(case["rho_0k"]), tensor(case["rho_k0"])
    printed = {"ignore_index": case["ignore_index"], "base_e": False}
    released = {**printed, "base_e": True}
    if not has_proper_margins(case):
        # the released code turns the true class into a negative, or into NaN
        with pytest.raises(ValueError, match=r"must be finite and >= 0|expected \(2,\), one entry per class"):
            loss_and_gradient(way, logits, labels, (*margins, one, one), **printed)
        return
    loss, valid, gradient = loss_and_gradient(way, logits, labels, (*margins, one, one), **printed)
    assert valid == case["n_valid"]
    expected = case["recommended_loss"] if case["paper_loss"] is None else case["paper_loss"]
    assert loss.dtype == dtype
    if (logits.double() - tensor(case["logits"])).abs().max() > 1e-5:
        tolerance = 1e-4  # float32 rounds logits around 1024 by so much
    assert abs(loss.item() - expected) <= tolerance * max(1.0, abs(loss.item()))
    if "paper_pixel_loss" in case:
        voxels, _, _ = loss_and_gradient(way, logits, labels, (*margins, one, one), reduction="none", **printed)
        kept = voxels[:, 0][labels != case["ignore_index"]] if case["ignore_index"] is not None else voxels[:, 0]
        expected_voxels = tensor([v for v in np.ravel(case["paper_pixel_loss"]).tolist() if v is not None])
        torch.testing.assert_close(kept.flatten().double(), expected_voxels, rtol=2 * tolerance, atol=tolerance)

    def check_gradient(values, allowed):
        torch.testing.assert_close(gradient.double(), tensor(values), rtol=0, atol=allowed)

    if "grad_analytic" in case:
        check_gradient(case["grad_analytic"], tolerance)
        check_gradient(case["grad_central_difference"], case["grad_tol"])
    if "valid_subgradients" in case:
        check_gradient(case["valid_subgradients"]["first"], tolerance)
    authors = case["authors_loss_float64_formula"]
    if case["n_valid"] and all((m > 0).all() for m in margins):
        loss, _, _ = loss_and_gradient(way, logits, labels, (*margins, one / classes, one), **released)
        assert abs(loss.item() - float(authors)) <= tolerance * max(1.0, abs(loss.item()))


@ways
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "name", ["c2_2d_basic", "c5_endoscopy_counts", "float16_logits", "bfloat16_logits", "c3_1d_spatial"]
)
def test_golden_in_lower_precision(name, dtype, way):
    """Half precision is widened before the first subtraction, so only the logits themselves are rounded."""
    case = CASES[IDS.index(name)]
    logits, labels = tensor(case["logits"]).to(dtype), torch.tensor(case["labels"])
    one = torch.ones(logits.shape[1])
    margins = tensor(case["rho_0k"]).float(), tensor(case["rho_k0"]).float()
    loss, _, gradient = loss_and_gradient(way, logits, labels, (*margins, one, one), base_e=False)
    double = tuple(t.double() for t in (*margins, one, one))
    expected, _, slopes = loss_and_gradient("eager", logits.double(), labels, double, base_e=False)
    assert loss.dtype == torch.float32
    assert gradient.dtype == dtype
    assert loss.item() == pytest.approx(expected.item(), rel=2e-6)
    tolerance = {torch.float32: 1e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}[dtype]
    torch.testing.assert_close(gradient.double(), slopes, rtol=tolerance, atol=1e-7 if dtype != torch.float16 else 1e-6)
    if case["dtype"] == str(dtype).removeprefix("torch."):
        assert loss.item() == pytest.approx(case["paper_loss"], rel=2e-6)


@st.composite
def problems(draw, forms=("index", "index with channel", "one-hot", "soft")):
    """Logits with ties, any target form, weights, ignored voxels, classes that were not annotated."""
    batch, channels = draw(st.integers(1, 3)), draw(st.integers(1, 6))
    spatial = tuple(draw(st.lists(st.integers(1, 4), max_size=3)))
    classes = max(channels, 2)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    logits = rng.normal(0, draw(st.sampled_from([0.1, 3.0, 50.0])), (batch, channels, *spatial))
    if draw(st.booleans()):
        logits = np.round(logits)  # ties
    voxels = int(np.prod(spatial))
    logits = logits.astype(np.float32).astype(np.float64)  # the kernels' oracle must see what they see
    labels = rng.integers(0, classes, (batch, *spatial))
    form = draw(st.sampled_from(forms))
    annotated = None
    if draw(st.booleans()):
        annotated = rng.random((batch, classes)) < 0.7
        for b in range(batch):
            allowed = np.flatnonzero(annotated[b])
            labels[b] = rng.choice(allowed, spatial) if len(allowed) else 0
    valid = np.ones((batch, *spatial), bool)
    ignore_index = draw(st.sampled_from([None, 255, -1, -100, 0, 1, classes]))
    if ignore_index is not None:
        if not 0 <= ignore_index < classes:
            labels = np.where(rng.random(labels.shape) < 0.3, ignore_index, labels)
        valid = labels != ignore_index
    inside = ignore_index is not None and 0 <= ignore_index < classes
    shares = (np.where(valid | inside, labels, 0).reshape(batch, 1, voxels) == np.arange(classes)[:, None]).astype(
        float
    )
    if form == "soft":
        mixed = rng.dirichlet(np.ones(classes), (batch, voxels)).transpose(0, 2, 1)
        if annotated is not None:
            mixed = mixed * annotated[:, :, None] + 1e-300
            mixed = mixed / mixed.sum(1, keepdims=True) * annotated[:, :, None]
            mixed = np.where(mixed.sum(1, keepdims=True) > 0.5, mixed, shares)
        hard = rng.random((batch, 1, voxels)) < 0.3
        shares = np.where(hard, shares, mixed)
        if inside:
            valid = (shares[:, ignore_index] != 1).reshape(valid.shape)
    options = {
        "base_e": draw(st.booleans()),
        "include_background": draw(st.booleans()),
        "ignore_index": ignore_index,
        "class_mask": None if annotated is None else torch.tensor(annotated),
    }
    terms = [rng.uniform(0, 2, classes) for _ in range(4)]
    if channels == 1 and form in ("one-hot", "soft"):
        target = torch.tensor(
            np.where(valid.reshape(batch, -1), shares[:, 1], -1 if ignore_index is None else ignore_index)
        )
        target = target.reshape(batch, 1, *spatial)
    elif form in ("one-hot", "soft"):
        sentinel = 0 if ignore_index is None else ignore_index
        target = torch.tensor(np.where(valid.reshape(batch, 1, -1) | inside, shares, sentinel))
        target = target.reshape(batch, classes, *spatial)
    else:
        target = torch.tensor(labels)
        floating = [] if channels == 1 else [torch.float32, torch.float64]  # floating labels of one channel are soft
        target = target.to(draw(st.sampled_from([torch.int64, torch.int16, *floating])))
        target = target.unsqueeze(1) if form == "index with channel" else target
    oracle_target = shares if form in ("one-hot", "soft") else np.where(valid, labels, 0).reshape(batch, voxels)
    return logits, target, oracle_target, terms, valid.reshape(batch, voxels), annotated, options


@pytest.mark.parametrize("way", ["eager", "operator"])
@given(problem=problems(), reduction=st.sampled_from(["none", "mean", "sum"]), factor=st.sampled_from([1.0, -2.5]))
@settings(deadline=None, max_examples=150)
def test_literal_transcription(way, problem, reduction, factor):
    check_against_oracle(way, problem, reduction, factor, torch.float64, 1e-11)


@pytest.mark.parametrize("way", SINGLE)
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # NumPy's, in voxels that are masked out
@given(
    problem=problems(forms=("index", "index with channel")),
    reduction=st.sampled_from(["none", "mean", "sum"]),
    factor=st.sampled_from([1.0, -2.5]),
)
@settings(deadline=None, max_examples=40)
def test_literal_transcription_of_the_kernels(way, problem, reduction, factor):
    check_against_oracle(way, problem, reduction, factor, torch.float32, 3e-6)


def check_against_oracle(way, problem, reduction, factor, dtype, tolerance):
    logits, target, oracle_target, terms, valid, annotated, options = problem
    batch, channels = logits.shape[:2]
    losses, slopes, _ = oracle(
        logits.reshape(batch, channels, -1),
        oracle_target,
        *terms,
        valid=valid,
        annotated=annotated,
        base_e=options["base_e"],
        include_background=options["include_background"],
    )
    if annotated is not None:
        valid = valid & (annotated.sum(1) >= 2)[:, None]
    count = max(int(valid.sum()), 1)
    expected = {"none": losses.reshape(batch, 1, *logits.shape[2:]), "sum": losses.sum(), "mean": losses.sum() / count}
    incoming = torch.full((batch, 1, *logits.shape[2:]) if reduction == "none" else (), factor, dtype=dtype)
    tensors = tuple(torch.tensor(t) for t in terms)
    loss, found, gradient = loss_and_gradient(
        way, torch.tensor(logits, dtype=dtype), target, tensors, incoming=incoming, reduction=reduction, **options
    )
    assert found == int(valid.sum())
    torch.testing.assert_close(loss.double(), torch.as_tensor(expected[reduction]), rtol=tolerance, atol=tolerance)
    slopes = slopes.reshape(logits.shape) * factor / (count if reduction == "mean" else 1)
    torch.testing.assert_close(gradient.double(), torch.tensor(slopes), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("holds_indices", [True, False])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("channels", [1, 2, 4])
def test_gradcheck(channels, reduction, holds_indices):
    generator = torch.Generator().manual_seed(channels)
    classes = max(channels, 2)
    logits = torch.randn(2, channels, 3, 2, dtype=torch.float64, generator=generator, requires_grad=True)
    terms = [torch.rand(classes, dtype=torch.float64, generator=generator) for _ in range(4)]
    if holds_indices:
        target = torch.randint(0, classes, (2, 3, 2), generator=generator)
        target[0, 0, 0] = 7
    else:
        target = torch.rand(2, classes, 3, 2, dtype=torch.float64, generator=generator).softmax(1)
        target = target[:, 1:] if channels == 1 else target
        target[0, :, 0, 0] = 7

    def function(x):
        return margin_calibration(x, target, *terms, reduction=reduction, ignore_index=7)[0]

    assert torch.autograd.gradcheck(function, logits)


@ways
def test_second_derivative_is_refused(way):
    logits = torch.randn(1, 3, 4, requires_grad=True)
    arguments = (logits, torch.zeros(1, 4, dtype=torch.long), *[torch.ones(3)] * 4)
    if way == "operator":
        loss, _ = torch.ops.margincal.margin_calibration(
            *arguments, None, False, True, None, "mean", False, "", "eager"
        )
    else:
        loss, _ = margin_calibration(*arguments, backend="triton" if way == "triton" else "auto")
    (gradient,) = torch.autograd.grad(loss, logits, create_graph=True)
    with pytest.raises(RuntimeError, match=r"no second derivative|no autograd formula"):
        gradient.sum().backward()


def test_backward_twice_through_a_retained_graph():
    logits = torch.randn(2, 3, 5, requires_grad=True)
    loss, _ = margin_calibration(logits, torch.randint(0, 3, (2, 5)), *[torch.ones(3)] * 4)
    (first,) = torch.autograd.grad(loss, logits, retain_graph=True, grad_outputs=torch.tensor(3.0))
    kept = first.clone()
    (second,) = torch.autograd.grad(loss, logits, retain_graph=True)
    torch.testing.assert_close(first, kept, rtol=0, atol=0)  # what was given away is not touched again
    torch.testing.assert_close(second * 3, first)


@ways
@pytest.mark.parametrize(
    "layout", ["channels last", "cropped", "transposed", "expanded", "strided batch", "3-D channels last"]
)
@pytest.mark.parametrize("elements", [7, 40, 65536])
def test_strides_and_block_sizes(monkeypatch, layout, elements, way):
    """Any view gives what its contiguous copy gives, however it is cut into blocks."""
    monkeypatch.setattr("monai_margincal.ops.voxel_blocks._ELEMENTS_PER_THREAD", elements)
    base = torch.randn(4, 3, 6, 8, 5)
    if layout == "channels last":
        logits = base[..., 0].contiguous(memory_format=torch.channels_last)
    elif layout == "3-D channels last":
        logits = base.contiguous(memory_format=torch.channels_last_3d)
    elif layout == "cropped":
        logits = base[:, :, 1:5, 2:7, 1:4]
    elif layout == "transposed":
        logits = base.transpose(2, 4)
    elif layout == "expanded":
        logits = base[:, :, :1].expand(-1, -1, 6, -1, -1)
    else:
        logits = base[::2]
    target = torch.randint(0, 3, (logits.shape[0], *logits.shape[2:]))
    target[..., 0] = 255
    target = target.transpose(1, 2).contiguous().transpose(1, 2)
    terms = [torch.rand(3) for _ in range(4)]
    expected = loss_and_gradient("eager", logits.contiguous(), target.contiguous(), terms, ignore_index=255)
    leaf = logits.detach()
    found = loss_and_gradient(way, leaf, target, terms, ignore_index=255)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


@ways
@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 3, 0), (5, 3)])
def test_empty_and_pointwise(shape, way):
    if way == "triton" and 0 in shape:
        pytest.skip("the kernels leave empty logits to the eager way")
    target = torch.zeros(shape[0], *shape[2:], dtype=torch.long)
    loss, valid, gradient = loss_and_gradient(way, torch.randn(shape), target, [torch.ones(3)] * 4)
    assert valid == target.numel()
    assert gradient.shape == shape
    assert (loss.item() == 0) == (valid == 0)


@ways
def test_repeatable_bit_by_bit(way):
    logits, target = torch.randn(2, 5, 40, 40), torch.randint(0, 5, (2, 40, 40))
    terms = [torch.rand(5) for _ in range(4)]
    first, second = (loss_and_gradient(way, logits, target, terms) for _ in range(2))
    assert torch.equal(first[0], second[0])
    assert torch.equal(first[2], second[2])


def test_ways_agree_bit_by_bit():
    logits, target = torch.randn(2, 5, 40, 40), torch.randint(0, 5, (2, 40, 40))
    terms = [torch.rand(5) for _ in range(4)]
    first, second = (loss_and_gradient(way, logits, target, terms) for way in ("eager", "operator"))
    assert torch.equal(first[0], second[0])
    assert torch.equal(first[2], second[2])


def test_registered_operator():
    """Schema, fake kernels and autograd registration, by torch's own checks."""
    logits = torch.randn(2, 3, 4, requires_grad=True)
    for reduction in ("none", "mean", "sum"):
        for target in (torch.randint(0, 3, (2, 4)), torch.rand(2, 3, 4).softmax(1)):
            arguments = (logits, target, *[torch.rand(3)] * 4, None, False, True, None, reduction, False, "", "eager")
            torch.library.opcheck(torch.ops.margincal.margin_calibration.default, arguments)


def test_no_full_size_temporary():
    """pytorch/torchtitan/pull/996 and fideus-labs/KonfAI/pull/106: beside the logits there is the gradient, and little else."""
    logits = torch.randn(1, 16, 64, 64, 64, requires_grad=True)  # 16 MiB
    target = torch.randint(0, 16, (1, 1, 64, 64, 64), dtype=torch.uint8)
    terms = [torch.rand(16) for _ in range(4)]
    size = logits.numel() * 4
    for options in ({}, {"ignore_index": 255}, {"class_mask": torch.ones(1, 16, dtype=torch.bool)}):
        peak = peak_allocation(
            lambda options=options: margin_calibration(logits, target, *terms, **options)[0].backward()
        )
        logits.grad = None
        assert peak <= 1.3 * size, f"{options}: peak of {peak / size:.2f} times the logits beside them"
    few, small = torch.randn(6, 2, 224, 336, requires_grad=True), torch.randint(0, 2, (6, 224, 336))
    peak = peak_allocation(lambda: margin_calibration(few, small, *[torch.rand(2)] * 4)[0].backward())
    assert peak <= 2.0 * few.numel() * 4
    soft = torch.rand(1, 16, 64, 64, 64).softmax(1)
    peak = peak_allocation(lambda: margin_calibration(logits, soft, *terms)[0].backward())
    assert peak <= 1.5 * size


def test_peak_allocation_can_tell():
    assert peak_allocation(lambda: torch.ones(1 << 20).double()) >= 12 << 20
