"""What is the kernels' own: numbering of voxels, 64-bit offsets, undeclared labels."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
import triton
import triton.language as tl
from ops.memory import peak_allocation
from ops.ways import loss_and_gradient, terms

from monai_margincal.ops import margin_calibration, triton_kernels, triton_launch


@pytest.mark.parametrize(
    ("classes", "options"),
    [
        *((classes, {}) for classes in (1, 2, 3, 8, 9, 14, 33, 105)),
        *((classes, {"base_e": False, "include_background": False}) for classes in (1, 2, 8, 9)),
        *((classes, {"reduction": "none"}) for classes in (1, 2, 8, 9)),
    ],
)
def test_any_number_of_classes(classes, options):
    """Both sides of every size at which the kernels change their plan; voxel counts that fill no block."""
    logits = torch.randn(1, classes, 601) * 3
    labels = torch.randint(0, max(classes, 2), (1, 601), dtype=torch.uint8)
    labels[:, ::7] = 255
    values = terms(max(classes, 2))
    expected = loss_and_gradient("eager", logits, labels, values, ignore_index=255, **options)
    found = loss_and_gradient("triton", logits, labels, values, ignore_index=255, **options)
    torch.testing.assert_close(found, expected, rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("dtype", triton_launch._LABEL_DTYPES)
def test_labels_are_read_as_they_are(dtype):
    logits = torch.randn(2, 2, 50)
    labels = torch.randint(0, 2, (2, 50))
    values = terms(2)
    expected = loss_and_gradient("triton", logits, labels, values)
    torch.testing.assert_close(loss_and_gradient("triton", logits, labels.to(dtype), values), expected, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype):
    logits = (torch.randn(2, 5, 70) * 4).to(dtype)
    labels, values = torch.randint(0, 5, (2, 70)), terms(5)
    expected = loss_and_gradient("eager", logits, labels, values, incoming=torch.tensor(4096.0))
    found = loss_and_gradient("triton", logits, labels, values, incoming=torch.tensor(4096.0))
    torch.testing.assert_close(found[0], expected[0], rtol=2e-6, atol=0)
    torch.testing.assert_close(found[2], expected[2], rtol=8e-3, atol=1e-3)
    assert found[2].dtype == dtype


@pytest.mark.parametrize("shape", [(30, 3), (5, 3, 2, 2), (2, 3, 1, 1, 1), (3, 3, 5, 4, 3), (1, 2, 257)])
@pytest.mark.parametrize("masked", [False, True])
def test_few_voxels_per_case(shape, masked):
    """Cases share a block, unless every case has classes of its own."""
    logits, labels = torch.randn(shape), torch.randint(0, 2, (shape[0], *shape[2:]))
    options = {}
    if masked:
        options["class_mask"] = torch.rand(shape[:2]) < 0.8
        options["class_mask"][:, :2] = True
    values = terms(shape[1])
    for reduction in ("none", "mean"):
        expected = loss_and_gradient("eager", logits, labels, values, reduction=reduction, **options)
        found = loss_and_gradient("triton", logits, labels, values, reduction=reduction, **options)
        torch.testing.assert_close(found, expected, rtol=3e-6, atol=3e-6)


def test_no_silent_copy_of_the_logits(monkeypatch):
    """What the kernel gets is the view itself."""
    seen = []
    original = triton_launch.common_arguments

    def watched(tensors, *rest, **options):
        seen.append(tensors)
        return original(tensors, *rest, **options)

    monkeypatch.setattr(triton_launch, "common_arguments", watched)
    base = torch.randn(2, 3, 8, 9, 10)
    for view in (
        base[:, :, 1:7, 2:8, 3:9],
        base.contiguous(memory_format=torch.channels_last_3d),
        base.transpose(2, 4),
    ):
        labels = torch.randint(0, 3, (2, *view.shape[2:]))
        margin_calibration(view, labels, *terms(3), backend="triton")
        assert seen[-1][0].data_ptr() == view.data_ptr()
        assert seen[-1][0].stride() == view.stride()


class TestOffsets:
    """C * S above 2^31."""

    def test_numbering_beyond_32_bits(self):
        @triton.jit
        def kernel(out, start, size1, size2, stride0, stride1, stride2, DIMS: tl.constexpr):
            number = start + tl.arange(0, 16)
            tl.store(
                out + tl.arange(0, 16),
                triton_kernels._voxel_offsets(number, size1, size2, stride0, stride1, stride2, DIMS),
            )

        start = 2**33 + 5
        for dims in (1, 2, 3):
            out = torch.zeros(16, dtype=torch.int64)
            sizes, strides = (1000, 2000), (3 * 10**7, 20_011, 7)
            kernel[(1,)](out, start, *sizes, *strides, DIMS=dims)
            expected = []
            for number in range(start, start + 16):
                inner, rest = (number % sizes[1], number // sizes[1]) if dims > 1 else (number, 0)
                middle, outer = (rest % sizes[0], rest // sizes[0]) if dims > 2 else (rest, 0)
                expected.append(outer * strides[0] + middle * strides[1] + inner * strides[2])
            assert out.tolist() == expected

    def test_small_numbers_and_large_strides(self):
        """32-bit voxel numbers are widened before they meet a stride."""

        @triton.jit
        def kernel(out, stride1, stride2):
            number = tl.arange(0, 16).to(tl.int32)
            tl.store(out + tl.arange(0, 16), triton_kernels._voxel_offsets(number, 1, 4, 0, stride1, stride2, 2))

        out = torch.zeros(16, dtype=torch.int64)
        kernel[(1,)](out, 2**31 - 1, 2**30)
        assert out.tolist() == [(i // 4) * (2**31 - 1) + (i % 4) * 2**30 for i in range(16)]

    def test_channels_and_cases_beyond_32_bits(self):
        """Real memory, most of it never touched: channel 1 and case 1 lie beyond 2^31 elements."""
        far = 2**31 + 64
        store = torch.empty(far + far // 2 + 4096, dtype=torch.float16)
        logits = store.as_strided((2, 2, 40), (far // 2, far, 1))
        values = torch.randn(2, 2, 40).half()
        logits.copy_(values)
        labels, weights = torch.randint(0, 2, (2, 40)), terms(2)
        found, _ = margin_calibration(logits, labels, *weights, backend="triton")
        expected, _ = margin_calibration(values, labels, *weights, backend="eager")
        torch.testing.assert_close(found, expected, rtol=2e-6, atol=0)

    @pytest.mark.parametrize(("shape", "wide"), [((1, 2, 2048, 2048, 512), True), ((1, 2, 2048, 2048, 500), False)])
    def test_when_voxel_numbers_are_64_bit(self, shape, wide):
        logits = torch.empty(shape, device="meta")
        labels = torch.empty((1, 1, *shape[2:]), device="meta", dtype=torch.uint8)
        values = triton_launch.ClassTerms(*terms(2))
        common = triton_launch.common_arguments(
            (logits, labels), values, None, None, include_background=True, base_e=False
        )
        assert common.options["WIDE"] is wide
        assert common.layout.dims == 1


class TestUndeclaredLabels:
    """kornia/kornia/issues/839, yiyixuxu/polyloss-pytorch/issues/4: an undeclared label was used as an index."""

    @pytest.mark.parametrize(
        ("value", "dtype"), [(255, torch.uint8), (-4, torch.int64), (2**40, torch.int64), (3, torch.float32)]
    )
    def test_surface_with_the_next_call(self, value, dtype):
        logits = torch.randn(1, 3, 600, requires_grad=True)
        labels = torch.randint(0, 3, (1, 600)).to(dtype)
        labels[0, 5], labels[0, 599] = value, value
        values = terms(3)
        loss, valid = margin_calibration(logits, labels, *values, backend="triton", classes_in_messages="0 a, 1 b, 2 c")
        assert loss.isnan()
        assert valid == 598
        loss.backward()
        assert (logits.grad[0, :, [5, 599]] == 0).all()
        assert torch.isfinite(logits.grad).all()
        right = torch.zeros(1, 600, dtype=torch.long)
        other, _ = margin_calibration(logits, right, *values, backend="triton", ignore_index=9)  # expects other labels
        assert torch.isfinite(other)
        message = (
            rf"earlier call on cpu: found the label value\(s\) {value} in 2 voxel\(s\).*\[0, 1, 2\] \(0 a, 1 b, 2 c\)"
        )
        with pytest.raises(ValueError, match=message):
            margin_calibration(logits, right, *values, backend="triton", classes_in_messages="0 a, 1 b, 2 c")
        again, _ = margin_calibration(
            logits, right, *values, backend="triton", classes_in_messages="0 a, 1 b, 2 c"
        )  # said once
        assert torch.isfinite(again)

    @pytest.mark.parametrize("value", [0.5, torch.nan, torch.inf, -torch.inf, 1e30])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
    def test_no_whole_numbers(self, value, dtype):
        labels = torch.zeros(1, 10, dtype=dtype)
        labels[0, 3] = value
        loss, valid = margin_calibration(torch.randn(1, 3, 10), labels, *terms(3), backend="triton", ignore_index=255)
        assert loss.isnan()
        assert valid == 9
        with pytest.raises(
            ValueError, match=r"in 1 voxel\(s\), expected whole numbers, class ids \[0, 1, 2\] or the ignored value 255"
        ):
            triton_launch.raise_for_undeclared_labels()
        triton_launch.raise_for_undeclared_labels()

    def test_several(self):
        labels = torch.tensor([[17, 300, 0, 1, 17]])
        loss, _ = margin_calibration(torch.randn(1, 2, 5), labels, *terms(2), backend="triton", reduction="none")
        assert loss.isnan().tolist() == [[[True, True, False, False, True]]]
        with pytest.raises(ValueError, match=r"between 17 and 300 in 3 voxel"):
            triton_launch.raise_for_undeclared_labels(torch.device("cpu"))

    def test_class_that_was_not_annotated(self):
        labels = torch.tensor([[0, 1, 2], [2, 2, 2]])
        mask = torch.tensor([[True, True, False], [False, True, False]])
        logits = torch.randn(2, 3, 3)
        loss, _ = margin_calibration(logits, labels, *terms(3), backend="triton", class_mask=mask)
        assert loss.isnan()
        with pytest.raises(ValueError, match=r"2 in 1 voxel\(s\).* no class that class_mask leaves out"):
            triton_launch.raise_for_undeclared_labels()


class TestNumerics:
    @pytest.mark.parametrize(
        ("dtype", "size"), [(torch.float16, 6e4), (torch.float32, 1e30), (torch.float32, torch.inf)]
    )
    def test_huge_and_infinite_logits(self, dtype, size):
        signs = torch.tensor([[1.0, -1, 0, 1], [-1, 1, -1, 1], [1, 1, 1, 1]]).T[None]
        logits = torch.where(signs == 0, 0, signs * size).to(dtype)
        labels = torch.tensor([[0, 1, 2]])
        values = [torch.ones(4)] * 4
        found = loss_and_gradient("triton", logits, labels, values)
        expected = loss_and_gradient("eager", logits, labels, values)
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
        assert torch.isfinite(found[0])
        assert torch.isfinite(found[2]).all()

    @pytest.mark.parametrize("channel", [0, 1, 2])
    def test_nan_in_a_valid_voxel_is_not_hidden(self, channel):
        logits = torch.zeros(1, 3, 4)
        logits[0, channel, 1] = torch.nan
        loss, _, _ = loss_and_gradient("triton", logits, torch.zeros(1, 4, dtype=torch.long), terms(3))
        assert loss.isnan()

    @pytest.mark.parametrize("classes", [3, 12])
    @pytest.mark.parametrize("junk", [torch.nan, torch.inf, -torch.inf])
    def test_an_ignored_voxel_changes_nothing(self, classes, junk):
        logits, labels, values = torch.randn(2, classes, 30), torch.randint(0, 3, (2, 30)), terms(classes)
        labels[:, 4] = 255
        expected = loss_and_gradient("triton", logits, labels, values, ignore_index=255)
        logits[:, :, 4] = junk
        found = loss_and_gradient("triton", logits, labels, values, ignore_index=255)
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
        assert (found[2][:, :, 4] == 0).all()
        infinite = loss_and_gradient(
            "triton", logits, labels, values, ignore_index=255, incoming=torch.tensor(torch.inf)
        )
        assert (infinite[2][:, :, 4] == 0).all()

    def test_all_ignored(self):
        logits, labels = torch.full((2, 3, 30), torch.nan), torch.full((2, 30), 255)
        loss, valid, gradient = loss_and_gradient("triton", logits, labels, terms(3), ignore_index=255)
        assert (loss.item(), valid) == (0, 0)
        assert (gradient == 0).all()

    def test_small_terms_are_not_rounded_away(self):
        """log2(1 + t) for t below float32's resolution of 1."""
        logits = torch.tensor([[40.0], [0.0], [-3.0]])[None]
        labels, values = (
            torch.zeros(1, 1, dtype=torch.long),
            [torch.zeros(3), torch.zeros(3), torch.ones(3), torch.ones(3)],
        )
        found, _, _ = loss_and_gradient("triton", logits, labels, values)
        expected, _, _ = loss_and_gradient("eager", logits.double(), labels, values)
        assert found.item() == pytest.approx(expected.item(), rel=1e-5)

    def test_memory_beside_the_logits(self):
        """Peak of forward and backward at most 1.1 times the logits."""
        logits = torch.randn(1, 4, 32, 32, 4, requires_grad=True)
        labels, values = torch.randint(0, 4, (1, 32, 32, 4), dtype=torch.uint8), terms(4)
        peak = peak_allocation(lambda: margin_calibration(logits, labels, *values, backend="triton")[0].backward())
        assert peak <= 1.1 * logits.numel() * 4


@pytest.mark.slow
def test_kernels_compile_for_nvidia_gpus(tmp_path):
    """Down to machine code, without a GPU: what the interpreter accepts, the compiler need not."""
    script = tmp_path / "compile_kernels.py"
    script.write_text(_COMPILE)
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # final, forward and backward in five settings, and both with the overlap in four, for two generations
    assert len(done.stdout.split()) == 38


_COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from monai_margincal.ops import triton_kernels as kernels, triton_overlap

POINTERS = {
    "target_ptr": "*u8", "mask_ptr": "*u8", "counts_ptr": "*i64", "valid_ptr": "*i64", "report_ptr": "*i64",
}

def build(kernel, constants, pointers):
    pointers = {**POINTERS, **pointers}
    constants = {name: value for name, value in constants.items() if name in kernel.arg_names}
    signature = {}
    for name in kernel.arg_names:
        integer = "i64" if name.endswith("_channel") else "i32"
        kind = pointers.get(name, "*fp32") if name.endswith("_ptr") else integer
        signature[name] = "constexpr" if name in constants else kind
    source = ASTSource(kernel, signature, {(kernel.arg_names.index(n),): v for n, v in constants.items()})
    for capability in (80, 90):
        binary = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": 4})
        assert binary.asm["cubin"]
        print(kernel.__name__)

plain = dict(C=14, BLOCK=512, DIMS=1, WIDE=False, ONE_CHANNEL=False, HAS_IGNORE=True, LABELS=0, HAS_MASK=False, HAS_MAP=False,
             BACKGROUND=True, NATURAL=False, MEAN=True, TWICE=False)
build(kernels.final_kernel, dict(MEAN=True, BLOCK=4096), {})
for logits, target, changes in (
    ("*fp32", "*u8", {}),
    ("*fp16", "*i64", dict(C=2, DIMS=3, ONE_CHANNEL=True, HAS_MASK=True, NATURAL=True, BACKGROUND=False, WIDE=True, TWICE=True)),
    ("*bf16", "*fp32", dict(LABELS=1, C=5, DIMS=2, HAS_MAP=True, MEAN=False, TWICE=True)),
    ("*bf16", "*bf16", dict(LABELS=1, C=105, DIMS=2, BLOCK=256)),
    ("*fp32", "*fp64", dict(LABELS=2, C=3, TWICE=True, HAS_MASK=True)),
):
    pointers = {"logits_ptr": logits, "gradient_ptr": logits, "target_ptr": target}
    build(kernels.forward_kernel, {**plain, **changes}, pointers)
    build(kernels.backward_kernel, {**plain, **changes}, pointers)
    if "HAS_MAP" not in changes:
        more = dict(MARGIN=target != "*bf16", SQUARED=logits == "*fp16")
        build(triton_overlap.overlap_forward_kernel, {**plain, **changes, **more}, pointers)
        build(triton_overlap.overlap_backward_kernel, {**plain, **changes, **more}, pointers)
"""
