"""The margin-calibrated log-loss and the sums that an overlap loss is made of, from one pass over the logits.

The ways in are those of `operator`: an autograd Function for eager calls, and the registered operator
``torch.ops.margincal.margin_overlap`` for compilers and TorchScript. But for a factor, the gradient of the margin loss does not
depend on what comes in from behind: on a CPU it is computed along with the loss, and backward adds that of the sums to it.

`torch.func` and batches of incoming gradients go through `plain_overlap`, in tensor operations of whole size.
"""

from __future__ import annotations

from typing import Any

import torch

from .operator import margin_calibration
from .overlap_passes import OverlapOptions, Results, empty_overlap_results, overlap_backward_pass, overlap_forward_pass
from .passes import check_shapes, chosen_backend
from .plain_overlap import plain_overlap_sums
from .targets import plain_tensor, stands_in
from .transformable import (
    TransformableGradient,
    refuse_second_derivative,
    stands_for_many,
    transforms_at_work,
)

__all__ = ["margin_overlap"]


def margin_overlap(
    input: torch.Tensor,
    target: torch.Tensor,
    margin_negative: torch.Tensor,
    margin_positive: torch.Tensor,
    negative_weight: torch.Tensor,
    positive_weight: torch.Tensor,
    *,
    class_mask: torch.Tensor | None = None,
    base_e: bool = True,
    include_background: bool = True,
    ignore_index: int | None = None,
    reduction: str = "mean",
    only_indices: bool = False,
    classes_in_messages: str = "",
    backend: str = "auto",
    squared: bool = False,
    minimum: bool = False,
    with_margin: bool = True,
) -> Results:
    """Margin-calibrated log-loss along with the sums of probabilities and labels that Dice, Jaccard and Tversky are made of.

    Probabilities are the softmax of the logits, for one channel those of class 0 at 0 and class 1. A voxel that does not count
    has probability and label 0 in every class, and so has a class that was not annotated in its case.

    Args:
        input: logits (B, N, *spatial), as for `margin_calibration`.
        target: class indices or one value per class, likewise.
        margin_negative: rho_0k, likewise.
        margin_positive: rho_k0, likewise.
        negative_weight: likewise.
        positive_weight: likewise.
        class_mask: bool (B, C), likewise.
        base_e: likewise.
        include_background: likewise; the sums are those of all classes.
        ignore_index: likewise.
        reduction: of the margin loss, "mean" or "sum".
        only_indices: likewise.
        classes_in_messages: likewise.
        backend: likewise.
        squared: squares of probabilities and labels in the last two sums.
        minimum: for targets with one value per class, the smaller of probability and label instead of their product.
        with_margin: if False, the loss is 0 and costs nothing.

    Returns:
        the loss, a float32 or float64 scalar; the number of valid voxels, int64; the sums (B, 3, C), float64: probability times
        label, probabilities, labels; the valid voxels of every case, int64 (B,).

    Raises:
        ValueError: as `margin_calibration`; ``reduction`` is "none".
        TypeError: ``input`` is not floating point.

    Example:
        >>> logits, one = torch.zeros(1, 2, 4), torch.ones(2)
        >>> _, _, sums, counted = margin_overlap(logits, torch.tensor([[0, 0, 0, 1]]), one, one, one, one)
        >>> sums
        tensor([[[1.5000, 0.5000],
                 [2.0000, 2.0000],
                 [3.0000, 1.0000]]], dtype=torch.float64)
        >>> counted
        tensor([4])
    """
    input, target = plain_tensor(input), plain_tensor(target)
    tensors = (margin_negative, margin_positive, negative_weight, positive_weight)
    class_mask = None if class_mask is None else plain_tensor(class_mask)
    options = OverlapOptions(
        base_e=base_e,
        include_background=include_background,
        ignore_index=ignore_index,
        reduction=reduction,
        only_indices=only_indices,
        classes_in_messages=classes_in_messages,
        backend=backend,
        squared=squared,
        minimum=minimum,
        with_margin=with_margin,
    )
    if transforms_at_work():
        loss, valid = margin_calibration(
            input,
            target,
            margin_negative,
            margin_positive,
            negative_weight=negative_weight,
            positive_weight=positive_weight,
            class_mask=class_mask,
            **options.of_margin._asdict(),
        )
        sums, counted = plain_overlap_sums(input, target, class_mask, options)
        return loss if with_margin else torch.zeros_like(loss), valid, sums, counted
    if torch.compiler.is_compiling() or stands_in(input):
        return torch.ops.margincal.margin_overlap(input, target, *tensors, class_mask, *options)
    wants_gradient = torch.is_grad_enabled() and input.requires_grad
    return _MarginOverlap.apply(input, target, *tensors, class_mask, options, wants_gradient)


class _MarginOverlap(torch.autograd.Function):
    """The way in for eager calls."""

    @staticmethod
    def forward(
        ctx: Any,
        input: torch.Tensor,
        target: torch.Tensor,
        margin_negative: torch.Tensor,
        margin_positive: torch.Tensor,
        negative_weight: torch.Tensor,
        positive_weight: torch.Tensor,
        class_mask: torch.Tensor | None,
        options: OverlapOptions,
        wants_gradient: bool,
    ) -> Results:
        tensors = (margin_negative, margin_positive, negative_weight, positive_weight)
        # half precision is rounded after both parts are added, which only backward can do
        early = (
            wants_gradient
            and options.with_margin
            and input.device.type == "cpu"
            and input.dtype in (torch.float32, torch.float64)
            and chosen_backend(options.backend) != "triton"
        )
        ctx.gradient = torch.empty_like(input) if early else None
        results = overlap_forward_pass(input, target, tensors, class_mask, options=options, gradient=ctx.gradient)
        _, valid, _, counted = results
        ctx.save_for_backward(input, target, *tensors, class_mask, valid, counted)
        ctx.options = options
        ctx.mark_non_differentiable(valid, counted)
        return results

    @staticmethod
    def backward(ctx: Any, grad_loss: torch.Tensor, _: Any, grad_sums: torch.Tensor, __: Any) -> tuple[Any, ...]:
        input, target, *tensors, class_mask, valid, counted = ctx.saved_tensors
        # handed over: a second backward through a retained graph computes it again
        early, ctx.gradient = ctx.gradient, None
        if stands_for_many(grad_loss) or stands_for_many(grad_sums):
            with torch.enable_grad():
                leaf = input.detach().requires_grad_()
                sums, _ = plain_overlap_sums(leaf, target, class_mask, ctx.options)
            (gradient,) = torch.autograd.grad(sums, leaf, grad_sums)
            if ctx.options.with_margin:
                one = torch.ones(grad_loss.shape, dtype=grad_loss.dtype, device=input.device)
                of_margin = TransformableGradient.apply(
                    one, valid, input, target, *tensors, class_mask, ctx.options.of_margin
                )
                gradient = (gradient + of_margin * grad_loss).to(input.dtype)
            return gradient, *(None,) * 8
        with torch.no_grad():
            # an infinite incoming gradient would turn the 0 of ignored voxels into NaN
            if early is not None and not bool(torch.isfinite(grad_loss).all()):
                early = None
            gradient = overlap_backward_pass(
                input,
                target,
                tuple(tensors),
                class_mask,
                options=ctx.options,
                grad_loss=grad_loss,
                grad_sums=grad_sums,
                valid=valid,
                counted=counted,
                margin_gradient=early,
            )
        if torch.is_grad_enabled():  # create_graph=True
            gradient = _DifferentiatedOnce.apply(gradient, input, grad_loss, grad_sums)
        return gradient, *(None,) * 8


class _DifferentiatedOnce(torch.autograd.Function):
    """Stands between a gradient and what it depends on, so that differentiating it fails instead of giving nothing."""

    @staticmethod
    def forward(ctx: Any, gradient: torch.Tensor, *sources: torch.Tensor) -> torch.Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        refuse_second_derivative()


@torch.library.custom_op("margincal::margin_overlap", mutates_args=())
def _overlap_operator(
    input: torch.Tensor,
    target: torch.Tensor,
    margin_negative: torch.Tensor,
    margin_positive: torch.Tensor,
    negative_weight: torch.Tensor,
    positive_weight: torch.Tensor,
    class_mask: torch.Tensor | None,
    base_e: bool,
    include_background: bool,
    ignore_index: int | None,
    reduction: str,
    only_indices: bool,
    classes_in_messages: str,
    backend: str,
    squared: bool,
    minimum: bool,
    with_margin: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    tensors = (margin_negative, margin_positive, negative_weight, positive_weight)
    options = OverlapOptions(
        base_e=base_e,
        include_background=include_background,
        ignore_index=ignore_index,
        reduction=reduction,
        only_indices=only_indices,
        classes_in_messages=classes_in_messages,
        backend=backend,
        squared=squared,
        minimum=minimum,
        with_margin=with_margin,
    )
    return overlap_forward_pass(input, target, tensors, class_mask, options=options)


@torch.library.custom_op("margincal::margin_overlap_backward", mutates_args=())
def _overlap_operator_backward(
    grad_loss: torch.Tensor,
    grad_sums: torch.Tensor,
    valid: torch.Tensor,
    counted: torch.Tensor,
    input: torch.Tensor,
    target: torch.Tensor,
    margin_negative: torch.Tensor,
    margin_positive: torch.Tensor,
    negative_weight: torch.Tensor,
    positive_weight: torch.Tensor,
    class_mask: torch.Tensor | None,
    base_e: bool,
    include_background: bool,
    ignore_index: int | None,
    reduction: str,
    only_indices: bool,
    classes_in_messages: str,
    backend: str,
    squared: bool,
    minimum: bool,
    with_margin: bool,
) -> torch.Tensor:
    tensors = (margin_negative, margin_positive, negative_weight, positive_weight)
    options = OverlapOptions(
        base_e=base_e,
        include_background=include_background,
        ignore_index=ignore_index,
        reduction=reduction,
        only_indices=only_indices,
        classes_in_messages=classes_in_messages,
        backend=backend,
        squared=squared,
        minimum=minimum,
        with_margin=with_margin,
    )
    return overlap_backward_pass(
        input,
        target,
        tensors,
        class_mask,
        options=options,
        grad_loss=grad_loss,
        grad_sums=grad_sums,
        valid=valid,
        counted=counted,
    )


@_overlap_operator.register_fake
def _(input: torch.Tensor, target: torch.Tensor, *rest: Any) -> Results:
    options = OverlapOptions(*rest[5:])
    check_shapes(input, target, rest[:4], rest[4], options=options.of_margin)
    return empty_overlap_results(input)


@_overlap_operator_backward.register_fake
def _(
    grad_loss: torch.Tensor,
    grad_sums: torch.Tensor,
    valid: torch.Tensor,
    counted: torch.Tensor,
    input: torch.Tensor,
    *rest: Any,
) -> torch.Tensor:
    return torch.empty_like(input)


def _keep_for_gradient(ctx: Any, inputs: tuple[Any, ...], output: Results) -> None:
    ctx.save_for_backward(*inputs[:7], output[1], output[3])
    ctx.options = inputs[7:]


def _gradient_of_operator(
    ctx: Any, grad_loss: torch.Tensor, _: Any, grad_sums: torch.Tensor, __: Any
) -> tuple[Any, ...]:
    *inputs, valid, counted = ctx.saved_tensors
    gradient = torch.ops.margincal.margin_overlap_backward(grad_loss, grad_sums, valid, counted, *inputs, *ctx.options)
    return gradient, *(None,) * 16


_overlap_operator.register_autograd(_gradient_of_operator, setup_context=_keep_for_gradient)
