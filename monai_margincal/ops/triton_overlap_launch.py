"""Calls of the Triton kernels that compute the margin loss along with the sums of an overlap loss; see `triton_launch`."""

from __future__ import annotations

import torch
import triton

from .block import ClassTerms
from .overlap_block import OverlapForm
from .triton_kernels import final_kernel
from .triton_launch import (
    FINAL_BLOCK,
    beside,
    common_arguments,
    on_device,
    readable,
    report_and_raise_earlier,
)
from .triton_overlap import overlap_backward_kernel, overlap_forward_kernel

__all__ = ["kernel_overlap_backward", "kernel_overlap_forward"]


def kernel_overlap_forward(
    input: torch.Tensor,
    target: torch.Tensor,
    terms: ClassTerms,
    *,
    overlap: OverlapForm,
    with_margin: bool,
    class_mask: torch.Tensor | None,
    ignore_index: int | None,
    include_background: bool,
    base_e: bool,
    reduction: str,
    classes_in_messages: str = "",
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Margin loss, number of valid voxels, sums (B, 3, C) and valid voxels per case; arguments as for `kernel_forward`.

    Args:
        input: logits (B, N, *spatial), not float64, any strides.
        target: class indices (B, 1, *spatial).
        terms: margins and weights.
        overlap: which sums.
        with_margin: if False, the loss is 0 (NaN for undeclared labels).
        class_mask: bool (B, C) or None.
        ignore_index: label of voxels that do not count, or None.
        include_background: if False, the terms of class 0 are left out of the loss.
        base_e: natural logarithm instead of base 2.
        reduction: "mean" or "sum".
        classes_in_messages: what the classes are called, for messages.

    Raises:
        ValueError: an earlier call, expecting the same labels on this device, has met undeclared ones.
    """
    target, terms = readable(target), beside(input, terms)
    common = common_arguments(
        (input, target),
        terms,
        class_mask,
        ignore_index,
        include_background=include_background,
        base_e=base_e,
        per_case=True,
    )
    (programs,) = common.grid
    device, num_classes = input.device, common.options["C"]
    report = report_and_raise_earlier(device, num_classes, ignore_index, classes_in_messages)
    losses = torch.empty(programs, dtype=torch.float32, device=device)
    counts = torch.empty(4 * programs, dtype=torch.int64, device=device)
    parts = torch.empty(input.shape[0], common.blocks, 3, num_classes, dtype=torch.float32, device=device)
    loss = torch.empty((), dtype=torch.float32, device=device)
    valid = torch.empty((), dtype=torch.int64, device=device)
    mask = losses if class_mask is None else class_mask.to(device).contiguous().view(torch.uint8)
    with on_device(device):
        overlap_forward_kernel[common.grid](
            input,
            target,
            mask,
            *terms,
            losses,
            counts,
            parts,
            **common.settings,
            MARGIN=with_margin,
            SQUARED=overlap.squared,
            **common.options,
        )
        final_kernel[(1,)](
            losses,
            counts,
            loss,
            valid,
            report,
            programs,
            MEAN=reduction == "mean",
            BLOCK=min(FINAL_BLOCK, triton.next_power_of_2(programs)),
            num_warps=8,
        )
    counted = counts[:programs].view(input.shape[0], common.blocks).sum(dim=1)
    return loss, valid, parts.sum(dim=1, dtype=torch.float64), counted


def kernel_overlap_backward(
    input: torch.Tensor,
    target: torch.Tensor,
    terms: ClassTerms,
    *,
    grad_loss: torch.Tensor,
    valid: torch.Tensor,
    slopes: torch.Tensor,
    overlap: OverlapForm,
    with_margin: bool,
    class_mask: torch.Tensor | None,
    ignore_index: int | None,
    include_background: bool,
    base_e: bool,
    reduction: str,
) -> torch.Tensor:
    """Gradient of the logits; ``slopes`` (B, 2, C) are the derivatives with respect to the hits and the predicted sums."""
    target, terms = readable(target), beside(input, terms)
    gradient = torch.empty_like(input)
    common = common_arguments(
        (input, target, gradient),
        terms,
        class_mask,
        ignore_index,
        include_background=include_background,
        base_e=base_e,
        per_case=True,
    )
    mask = gradient if class_mask is None else class_mask.to(input.device).contiguous().view(torch.uint8)
    with on_device(input.device):
        overlap_backward_kernel[common.grid](
            input,
            target,
            gradient,
            mask,
            *terms,
            grad_loss.contiguous(),
            valid,
            slopes.to(torch.float32).contiguous(),
            **common.settings,
            gradient_channel=gradient.stride(1),
            MEAN=reduction == "mean",
            MARGIN=with_margin,
            SQUARED=overlap.squared,
            **common.options,
        )
    return gradient
