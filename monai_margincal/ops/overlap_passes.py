"""Forward and backward pass of the margin loss along with the sums of an overlap loss."""

from __future__ import annotations

from typing import NamedTuple

import torch

from .block import ClassTerms
from .cpu_ways import way_for
from .overlap_block import OverlapForm
from .passes import (
    Options,
    check_shapes,
    check_values,
    chosen_backend,
    compute_dtype,
    for_kernels,
    kernels_for,
    prepared,
)
from .targets import with_channel

__all__ = ["OverlapOptions", "empty_overlap_results", "overlap_backward_pass", "overlap_forward_pass"]

Results = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


class OverlapOptions(NamedTuple):
    """Everything that is not a tensor, of the margin part and of the overlap part; see `Options` and `OverlapForm`."""

    base_e: bool
    include_background: bool
    ignore_index: int | None
    reduction: str
    only_indices: bool
    classes_in_messages: str
    backend: str
    squared: bool
    minimum: bool
    with_margin: bool

    @property
    def of_margin(self) -> Options:
        """Those that the margin part has."""
        return Options(
            base_e=self.base_e,
            include_background=self.include_background,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            only_indices=self.only_indices,
            classes_in_messages=self.classes_in_messages,
            backend=self.backend,
        )

    @property
    def form(self) -> OverlapForm:
        """Which sums are wanted."""
        return OverlapForm(self.squared, self.minimum)


def overlap_forward_pass(
    input: torch.Tensor,
    target: torch.Tensor,
    tensors: tuple[torch.Tensor, ...],
    class_mask: torch.Tensor | None,
    *,
    options: OverlapOptions,
    gradient: torch.Tensor | None = None,
) -> Results:
    """Margin loss, number of valid voxels, sums (B, 3, C) and valid voxels per case (B,).

    Fills ``gradient``, where given, with that of the margin loss for an incoming gradient of 1.
    """
    holds_indices = check_shapes(input, target, tensors, class_mask, options=options.of_margin)
    if options.reduction == "none":
        raise ValueError("reduction='none' has no meaning for sums over voxels: expected 'mean' or 'sum'")
    if input.device.type == "meta":
        return empty_overlap_results(input)
    check_values(tensors)
    if kernels_for(input, target, holds_indices, options.of_margin) is not None:
        from .triton_overlap_launch import kernel_overlap_forward

        return kernel_overlap_forward(
            input,
            with_channel(input, target),
            ClassTerms(*tensors),
            overlap=options.form,
            with_margin=options.with_margin,
            classes_in_messages=options.classes_in_messages,
            **for_kernels(class_mask, options.of_margin),
        )
    dtype = compute_dtype(input)
    target, form, terms = prepared(
        input, target, tensors, class_mask, options=options.of_margin, holds_indices=holds_indices
    )
    # also what refuses a target, before anything is computed with it
    way = way_for(input, target, form, chosen_backend(options.backend))
    count = way.voxels(input, target, form)
    share = 1.0 / max(count, 1) if options.reduction == "mean" else 1.0
    total, sums, counted = way.overlap(
        input,
        target,
        form,
        terms if options.with_margin else None,
        overlap=options.form,
        base_e=options.base_e,
        gradient=gradient,
        gradient_scale=torch.tensor(share, dtype=dtype, device=input.device),
    )
    loss = total / max(count, 1) if options.reduction == "mean" else total
    return loss.to(dtype), torch.tensor(count, dtype=torch.int64, device=input.device), sums, counted


def overlap_backward_pass(
    input: torch.Tensor,
    target: torch.Tensor,
    tensors: tuple[torch.Tensor, ...],
    class_mask: torch.Tensor | None,
    *,
    options: OverlapOptions,
    grad_loss: torch.Tensor,
    grad_sums: torch.Tensor,
    valid: torch.Tensor,
    counted: torch.Tensor,
    margin_gradient: torch.Tensor | None = None,
) -> torch.Tensor:
    """Gradient of the logits for both parts, rounded to their dtype once.

    Args:
        input: logits.
        target: their labels.
        tensors: margins and weights.
        class_mask: classes that were annotated, or None.
        options: see there.
        grad_loss: incoming gradient of the margin loss.
        grad_sums: that of the sums, (B, 3, C).
        valid: number of valid voxels.
        counted: the same per case, (B,).
        margin_gradient: what the forward pass has filled; is used up, and returned with both parts in it.
    """
    if input.device.type == "meta":
        return torch.empty_like(input)
    holds_indices = check_shapes(input, target, tensors, class_mask, options=options.of_margin)
    # what does not count has no sums to speak of: without smoothing its derivatives are 0/0
    counts = (counted > 0)[:, None] if class_mask is None else (counted > 0)[:, None] & class_mask
    slopes = torch.where(counts[:, None], grad_sums[:, :2], 0.0)
    if kernels_for(input, target, holds_indices, options.of_margin) is not None:
        from .triton_overlap_launch import kernel_overlap_backward

        return kernel_overlap_backward(
            input,
            with_channel(input, target),
            ClassTerms(*tensors),
            grad_loss=grad_loss,
            valid=valid,
            slopes=slopes,
            overlap=options.form,
            with_margin=options.with_margin,
            **for_kernels(class_mask, options.of_margin),
        )
    target, form, terms = prepared(
        input, target, tensors, class_mask, options=options.of_margin, holds_indices=holds_indices
    )
    scale = grad_loss
    if options.reduction == "mean" and margin_gradient is None:
        scale = scale / valid.clamp_min(1)
    gradient = torch.empty_like(input) if margin_gradient is None else margin_gradient
    way = way_for(input, target, form, chosen_backend(options.backend))
    way.overlap_gradient(
        input,
        target,
        form,
        terms if options.with_margin else None,
        overlap=options.form,
        base_e=options.base_e,
        slopes=slopes,
        gradient=gradient,
        gradient_scale=scale.to(compute_dtype(input)),
        holds_margin=margin_gradient is not None,
    )
    return gradient


def empty_overlap_results(input: torch.Tensor) -> Results:
    """Results of the right shapes and dtypes, for tracers and the device "meta"."""
    cases, classes = input.shape[0], max(input.shape[1], 2)
    return (
        input.new_empty((), dtype=compute_dtype(input)),
        input.new_empty((), dtype=torch.int64),
        input.new_empty((cases, 3, classes), dtype=torch.float64),
        input.new_empty((cases,), dtype=torch.int64),
    )
