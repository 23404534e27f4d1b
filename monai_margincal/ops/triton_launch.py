"""Calls of the Triton kernels: how voxels are numbered, block sizes, and what becomes of undeclared labels.

Undeclared labels are found by the kernels without waiting for the device: the loss is NaN at once, and the kernels write
what they found to a few bytes of page-locked host memory, which `raise_for_undeclared_labels` looks at. Every forward call
looks before it starts, so the ValueError comes with the first call after the device has finished the one that had the labels.
"""

from __future__ import annotations

import functools
import os
from typing import Any, NamedTuple

import torch
import triton

from ..labels import expected_classes
from .block import ClassTerms
from .triton_kernels import backward_kernel, final_kernel, forward_kernel

if tuple(int(part) for part in triton.__version__.split(".")[:2]) < (3, 3):
    raise ImportError(f"the kernels need triton 3.3 or newer, found {triton.__version__}")

__all__ = [
    "FINAL_BLOCK",
    "beside",
    "common_arguments",
    "kernel_backward",
    "kernel_forward",
    "not_taken",
    "on_device",
    "raise_for_undeclared_labels",
    "readable",
    "report_and_raise_earlier",
    "runs_on",
]

INTERPRETED = os.environ.get("TRITON_INTERPRET", "0") == "1"

#: up to this many channels the gradient is computed twice rather than corrected in memory afterwards
_FEW_CHANNELS = 8
#: how many partial results the last kernel takes at once
FINAL_BLOCK = 4096
_LABEL_DTYPES = (
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
)


class _Layout(NamedTuple):
    """Voxels as an outer index and three inner ones, (outer, 0, 1, 2); unused inner dimensions have size 1."""

    outer: int
    sizes: tuple[int, int, int]
    strides: tuple[tuple[int, ...], ...]  # of every tensor, outer first
    dims: int

    @property
    def size(self) -> int:
        return self.sizes[0] * self.sizes[1] * self.sizes[2]


def _layout(tensors: tuple[torch.Tensor, ...], keep_batch: bool) -> _Layout:
    """Number the voxels of tensors (B, channels, *spatial), up to three spatial dimensions, together.

    Neighbouring dimensions are merged where every tensor steps through them evenly. Where each case has few voxels, the batch
    becomes an inner dimension, so that a block is not mostly empty, unless ``keep_batch`` is given or that makes too many.
    """
    reference = tensors[0]
    sizes = [reference.shape[0], *reference.shape[2:]]
    strides = [[t.stride(0), *t.stride()[2:]] for t in tensors]
    inner_sizes: list[int] = []
    inner_strides: list[list[int]] = [[] for _ in tensors]
    small = not keep_batch and reference.shape[2:].numel() < 256
    for dim in range(0 if small else 1, len(sizes)):
        if sizes[dim] == 1:
            continue
        even = bool(inner_sizes) and all(
            merged[-1] == stride[dim] * sizes[dim] for merged, stride in zip(inner_strides, strides, strict=True)
        )
        if even:
            inner_sizes[-1] *= sizes[dim]
            for merged, stride in zip(inner_strides, strides, strict=True):
                merged[-1] = stride[dim]
        else:
            inner_sizes.append(sizes[dim])
            for merged, stride in zip(inner_strides, strides, strict=True):
                merged.append(stride[dim])
    if len(inner_sizes) > 3:
        return _layout(tensors, keep_batch=True)
    padding = 3 - len(inner_sizes)
    padded = (*(1,) * padding, *inner_sizes)
    outer_strides = [0 if small else stride[0] for stride in strides]
    return _Layout(
        1 if small else sizes[0],
        (padded[0], padded[1], padded[2]),
        tuple((o, *(0,) * padding, *inner) for o, inner in zip(outer_strides, inner_strides, strict=True)),
        max(1, len(inner_sizes)),
    )


def _block_size(num_classes: int) -> int:
    """Voxels per program: the channels of a block are walked twice and should stay in the L1 cache meanwhile, if they fit."""
    return 512 if num_classes <= 32 else 256


def runs_on(device: torch.device) -> bool:
    """Whether the kernels can run there."""
    return device.type == "cuda" or INTERPRETED


def not_taken(input: torch.Tensor, target: torch.Tensor, holds_indices: bool) -> str:
    """What the kernels do not take among these arguments; empty if they take them all."""
    if not holds_indices:
        return "targets with one value per class"
    if input.dtype == torch.float64:
        return "float64 logits"
    if target.dtype not in _LABEL_DTYPES:
        return f"targets of the dtype {target.dtype}"
    if input.numel() == 0:
        return "empty logits"
    return "more than three spatial dimensions" if input.ndim > 5 else ""


class _Common(NamedTuple):
    """Arguments that both passes share."""

    layout: _Layout
    blocks: int
    settings: dict[str, Any]
    options: dict[str, Any]

    @property
    def grid(self) -> tuple[int]:
        return (self.layout.outer * self.blocks,)


def common_arguments(
    tensors: tuple[torch.Tensor, ...],
    terms: ClassTerms,
    class_mask: torch.Tensor | None,
    ignore_index: int | None,
    *,
    include_background: bool,
    base_e: bool,
    per_case: bool = False,
) -> _Common:
    """Arguments of a kernel for tensors (B, channels, *spatial); ``per_case`` keeps a block of voxels within one case."""
    input = tensors[0]
    layout = _layout(tensors, keep_batch=per_case or class_mask is not None)
    num_classes = max(input.shape[1], 2)
    block = _block_size(num_classes)
    blocks = triton.cdiv(layout.size, block)
    settings = {
        "ignore": 0 if ignore_index is None else ignore_index,
        "blocks": blocks,
        "size": layout.size,
        "size1": layout.sizes[1],
        "size2": layout.sizes[2],
        # one entry for all classes alike is read again and again
        "rho_negative_stride": _step(terms.margin_negative),
        "rho_positive_stride": _step(terms.margin_positive),
        "weight_negative_stride": _step(terms.negative_weight),
        "weight_positive_stride": _step(terms.positive_weight),
    }
    for name, strides in zip(("logits", "target", "gradient"), layout.strides, strict=False):
        for place, stride in zip(("outer", "0", "1", "2"), strides, strict=True):
            settings[f"{name}_{place}"] = stride
    settings["logits_channel"] = input.stride(1)
    options = {
        "C": num_classes,
        "BLOCK": block,
        "DIMS": layout.dims,
        "WIDE": layout.size + block >= 2**31,
        "ONE_CHANNEL": input.shape[1] == 1,
        "HAS_IGNORE": ignore_index is not None,
        "LABELS": 2 if tensors[1].dtype == torch.float64 else int(tensors[1].is_floating_point()),
        "HAS_MASK": class_mask is not None,
        "BACKGROUND": include_background,
        "NATURAL": base_e,
        "num_warps": 4,
    }
    return _Common(layout, blocks, settings, options)


def _step(values: torch.Tensor) -> int:
    return 0 if values.shape[0] == 1 else values.stride(0)


def readable(target: torch.Tensor) -> torch.Tensor:
    return target.view(torch.uint8) if target.dtype == torch.bool else target


def kernel_forward(
    input: torch.Tensor,
    target: torch.Tensor,
    terms: ClassTerms,
    *,
    class_mask: torch.Tensor | None,
    ignore_index: int | None,
    include_background: bool,
    base_e: bool,
    reduction: str,
    classes_in_messages: str = "",
) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss and number of valid voxels; undeclared labels make the loss NaN, and the next call raises for them.

    Args:
        input: logits (B, N, *spatial), not float64, any strides.
        target: class indices (B, 1, *spatial).
        terms: margins and weights, (C,) or (1,) each, any floating dtype, on the same device.
        class_mask: bool (B, C) or None.
        ignore_index: label of voxels that do not count, or None.
        include_background: if False, the terms of class 0 are left out.
        base_e: natural logarithm instead of base 2.
        reduction: "none", "mean" or "sum".
        classes_in_messages: what the classes are called, for messages.

    Raises:
        ValueError: an earlier call, expecting the same labels on this device, has met undeclared ones.
    """
    target, terms = readable(target), beside(input, terms)
    common = common_arguments(
        (input, target), terms, class_mask, ignore_index, include_background=include_background, base_e=base_e
    )
    (programs,) = common.grid
    device, num_classes = input.device, common.options["C"]
    report = report_and_raise_earlier(device, num_classes, ignore_index, classes_in_messages)
    sums = torch.empty(programs, dtype=torch.float32, device=device)
    counts = torch.empty(4 * programs, dtype=torch.int64, device=device)
    loss = torch.empty((), dtype=torch.float32, device=device)
    valid = torch.empty((), dtype=torch.int64, device=device)
    loss_map = sums
    if reduction == "none":
        loss_map = torch.empty((input.shape[0], 1, *input.shape[2:]), dtype=torch.float32, device=device)
    mask = sums if class_mask is None else class_mask.to(device).contiguous().view(torch.uint8)
    with on_device(device):
        forward_kernel[common.grid](
            input,
            target,
            loss_map,
            mask,
            *terms,
            sums,
            counts,
            **common.settings,
            HAS_MAP=reduction == "none",
            **common.options,
        )
        final_kernel[(1,)](
            sums,
            counts,
            loss,
            valid,
            report,
            programs,
            MEAN=reduction == "mean",
            BLOCK=min(FINAL_BLOCK, triton.next_power_of_2(programs)),
            num_warps=8,
        )
    return loss_map if reduction == "none" else loss, valid


def kernel_backward(
    input: torch.Tensor,
    target: torch.Tensor,
    terms: ClassTerms,
    grad_loss: torch.Tensor,
    valid: torch.Tensor,
    *,
    class_mask: torch.Tensor | None,
    ignore_index: int | None,
    include_background: bool,
    base_e: bool,
    reduction: str,
) -> torch.Tensor:
    """Gradient of the logits, in their dtype and memory format. Arguments as for `kernel_forward`, with the incoming gradient."""
    target, terms = readable(target), beside(input, terms)
    gradient = torch.empty_like(input)
    common = common_arguments(
        (input, target, gradient), terms, class_mask, ignore_index, include_background=include_background, base_e=base_e
    )
    grad_loss = grad_loss.contiguous()
    mask = grad_loss if class_mask is None else class_mask.to(input.device).contiguous().view(torch.uint8)
    with on_device(input.device):
        backward_kernel[common.grid](
            input,
            target,
            gradient,
            mask,
            *terms,
            grad_loss,
            valid,
            **common.settings,
            gradient_channel=gradient.stride(1),
            HAS_MAP=reduction == "none",
            MEAN=reduction == "mean",
            TWICE=common.options["C"] <= _FEW_CHANNELS or common.options["ONE_CHANNEL"],
            **common.options,
        )
    return gradient


def beside(input: torch.Tensor, terms: ClassTerms) -> ClassTerms:
    """The terms where the kernels can read them, also of a loss that was not moved to the device of its logits."""
    return ClassTerms(*(term if term.device == input.device else term.to(input.device) for term in terms))


def on_device(device: torch.device) -> Any:
    return torch.cuda.device(device) if device.type == "cuda" else torch.no_grad()


#: number of undeclared labels seen, the smallest, the largest, per device and per description of what was expected there;
#: page-locked host memory that the kernels write to
_REPORTS: dict[tuple[torch.device, str], torch.Tensor] = {}


def report_and_raise_earlier(
    device: torch.device, num_classes: int, ignore_index: int | None, classes_in_messages: str
) -> torch.Tensor:
    """Where the kernels are to report undeclared labels; raises for those that an earlier call has reported there."""
    key = (device, _expectation(num_classes, ignore_index, classes_in_messages))
    if key not in _REPORTS:
        _REPORTS[key] = torch.zeros(3, dtype=torch.int64, device="cpu", pin_memory=device.type == "cuda")
    _raise_if_reported(*key)
    return _REPORTS[key]


@functools.cache
def _expectation(num_classes: int, ignore_index: int | None, classes_in_messages: str) -> str:
    # needed at every call, which must not wait for a sentence to be put together
    return expected_classes(range(num_classes), ignore_index, classes_in_messages)


def raise_for_undeclared_labels(device: torch.device | None = None) -> None:
    """Wait for the device and raise for undeclared labels that earlier calls have met.

    Losses do so by themselves, at their next call and without waiting.

    Args:
        device: where to look; everywhere if None.

    Raises:
        ValueError: there were some.
    """
    for where, expected in list(_REPORTS):
        if device is None or where == device:
            if where.type == "cuda":
                torch.cuda.synchronize(where)
            _raise_if_reported(where, expected)


def _raise_if_reported(device: torch.device, expected: str) -> None:
    report = _REPORTS[device, expected]
    if int(report[0]) == 0:
        return
    if device.type == "cuda":
        torch.cuda.synchronize(device)  # the numbers are written one by one
    count, low, high = report.tolist()
    report.zero_()
    found = f"{low}" if low == high else f"between {low} and {high}"
    raise ValueError(
        f"target of an earlier call on {device}: found the label value(s) {found} in {count} voxel(s), expected whole numbers, "
        f"{expected}, and no class that class_mask leaves out"
    )
