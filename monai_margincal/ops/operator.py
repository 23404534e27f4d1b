"""The margin-calibrated log-loss as one differentiable operation with its analytic gradient.

Three ways lead to the same code: eager calls go through an autograd Function; `torch.compile`, `torch.export` and TorchScript go
through the registered operator ``torch.ops.margincal.margin_calibration``, which they treat as one opaque step. `torch.func` has
a way of its own, in `transformable`. A second derivative is refused.

On a CPU the eager way computes the gradient while the block is in the cache anyway, and hands it over in backward; everywhere
else backward computes it afresh from the logits, already multiplied by the incoming gradient, so that a scaled half-precision
gradient is rounded once.
"""

from __future__ import annotations

from typing import Any

import torch

from .passes import Options, backward_pass, check_shapes, chosen_backend, empty_results, forward_pass
from .targets import plain_tensor, stands_in
from .transformable import (
    TransformableGradient,
    TransformableLoss,
    refuse_second_derivative,
    stands_for_many,
    transforms_at_work,
)

__all__ = ["margin_calibration"]


def margin_calibration(
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
) -> tuple[torch.Tensor, torch.Tensor]:
    """Margin-calibrated log-loss, with margins and weights as tensors that may change between calls.

    For every valid voxel of class y: w+_y phi(rho_y0 - lambda_y) + sum_{k != y} w-_k phi(lambda_k + rho_0k), with
    lambda_k = s_k - max_{j != k} s_j and phi(z) = ln(1 + e^z), or log2(1 + 2^z) without ``base_e``. At a tie the gradient takes
    the first of the largest logits. Nothing valid: 0, with zero gradients.

    Logits beyond 2^100 (float64: 2^1000), infinite ones included, count as 2^100, so the loss stays finite; NaN in a valid
    voxel gives NaN.

    Args:
        input: logits (B, N, *spatial), N >= 2 classes, or N = 1 for the logit of class 1 against class 0 at 0. Any strides.
        target: class indices (B, 1, *spatial) or (B, *spatial), or one value per class (B, N, *spatial).
        margin_negative: rho_0k, shape (C,) or (1,) for all classes alike; C is N, or 2 for N = 1.
        margin_positive: rho_k0, likewise.
        negative_weight: weight of the false-positive terms, likewise.
        positive_weight: weight of the false-negative terms, likewise.
        class_mask: bool (B, C), False for a class that was not annotated in a case: there it has no terms, does not compete,
            and its logit's gradient is 0. A case with fewer than two annotated classes has no margins: its voxels count as
            ignored.
        base_e: natural logarithm; False: base 2, as printed.
        include_background: if False, both terms of class 0 are left out; its logit still competes in the maximum.
        ignore_index: label of voxels that do not count.
        reduction: "mean" (over valid voxels, summed over classes), "sum", or "none".
        only_indices: refuse targets with one value per class.
        classes_in_messages: what the classes are called, for messages.
        backend: "triton" for the GPU kernels of `triton_kernels`, "eager" for plain tensor operations, "auto" for the
            kernels wherever they can run, on a CPU for those of `cpu_launch`; the environment variable MARGINCAL_KERNEL says
            what "auto" is.

    Returns:
        the loss, float32 (float64 for float64 logits): a scalar, or (B, 1, *spatial) for "none" with 0 in ignored voxels;
        and the number of valid voxels, an int64 scalar.

    Raises:
        ValueError: shapes do not fit, an undeclared label, overlapping one-hot channels, a voxel of a class that was not
            annotated, a negative or non-finite margin or weight (checked on a CPU only). The GPU kernels do not wait to
            report an undeclared label or a class that was not annotated: the loss is NaN, and the error comes with the next
            call, or with `monai_margincal.ops.triton_launch.raise_for_undeclared_labels`.
        TypeError: ``input`` is not floating point.

    Source: arXiv:2011.01462, the rho-calibrated log-loss of "A practical implementation".

    Example:
        >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
        >>> zero, one = torch.zeros(2), torch.ones(2)
        >>> loss, valid = margin_calibration(logits, torch.tensor([0, 1]), zero, zero, one, one)
        >>> print(f"{loss:.4f}", int(valid))
        0.4402 2
    """
    input, target = plain_tensor(input), plain_tensor(target)
    tensors = (margin_negative, margin_positive, negative_weight, positive_weight)
    class_mask = None if class_mask is None else plain_tensor(class_mask)
    options = Options(
        base_e=base_e,
        include_background=include_background,
        ignore_index=ignore_index,
        reduction=reduction,
        only_indices=only_indices,
        classes_in_messages=classes_in_messages,
        backend=backend,
    )
    if transforms_at_work():
        return TransformableLoss.apply(input, target, *tensors, class_mask, options)
    if torch.compiler.is_compiling() or stands_in(input):
        return torch.ops.margincal.margin_calibration(input, target, *tensors, class_mask, *options)
    wants_gradient = torch.is_grad_enabled() and input.requires_grad
    return _MarginCalibration.apply(input, target, *tensors, class_mask, options, wants_gradient)


class _MarginCalibration(torch.autograd.Function):
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
        options: Options,
        wants_gradient: bool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        tensors = (margin_negative, margin_positive, negative_weight, positive_weight)
        # half precision is rounded after scaling, which only backward can do
        early = (
            wants_gradient
            and input.device.type == "cpu"
            and input.dtype in (torch.float32, torch.float64)
            and chosen_backend(options.backend) != "triton"
        )
        ctx.gradient = torch.empty_like(input) if early else None
        loss, valid = forward_pass(input, target, tensors, class_mask, options=options, gradient=ctx.gradient)
        ctx.save_for_backward(input, target, *tensors, class_mask, valid)
        ctx.options = options
        ctx.mark_non_differentiable(valid)
        return loss, valid

    @staticmethod
    def backward(ctx: Any, grad_loss: torch.Tensor, _: Any) -> tuple[Any, ...]:
        input, target, *tensors, class_mask, valid = ctx.saved_tensors
        # handed over: a second backward through a retained graph computes it again
        gradient, ctx.gradient = ctx.gradient, None
        if stands_for_many(grad_loss):
            one = torch.ones(grad_loss.shape, dtype=grad_loss.dtype, device=grad_loss.device)
            gradient = TransformableGradient.apply(one, valid, input, target, *tensors, class_mask, ctx.options)
            return (gradient * grad_loss).to(input.dtype), *(None,) * 8
        with torch.no_grad():
            # an infinite incoming gradient would turn the 0 of ignored voxels into NaN
            if gradient is None or not bool(torch.isfinite(grad_loss).all()):
                gradient = backward_pass(
                    input, target, tuple(tensors), class_mask, options=ctx.options, grad_loss=grad_loss, valid=valid
                )
            elif grad_loss.ndim > 0 or float(grad_loss) != 1:
                gradient.mul_(grad_loss)
        if torch.is_grad_enabled():  # create_graph=True
            gradient = _NoSecondDerivative.apply(gradient, input, grad_loss)
        return gradient, *(None,) * 8


class _NoSecondDerivative(torch.autograd.Function):
    """Stands between a gradient and what it depends on, so that differentiating it fails instead of giving nothing."""

    @staticmethod
    def forward(ctx: Any, gradient: torch.Tensor, input: torch.Tensor, grad_loss: torch.Tensor) -> torch.Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        refuse_second_derivative()


@torch.library.custom_op("margincal::margin_calibration", mutates_args=())
def _operator(
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
) -> tuple[torch.Tensor, torch.Tensor]:
    tensors = (margin_negative, margin_positive, negative_weight, positive_weight)
    options = Options(
        base_e=base_e,
        include_background=include_background,
        ignore_index=ignore_index,
        reduction=reduction,
        only_indices=only_indices,
        classes_in_messages=classes_in_messages,
        backend=backend,
    )
    return forward_pass(input, target, tensors, class_mask, options=options)


@torch.library.custom_op("margincal::margin_calibration_backward", mutates_args=())
def _operator_backward(
    grad_loss: torch.Tensor,
    valid: torch.Tensor,
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
) -> torch.Tensor:
    tensors = (margin_negative, margin_positive, negative_weight, positive_weight)
    options = Options(
        base_e=base_e,
        include_background=include_background,
        ignore_index=ignore_index,
        reduction=reduction,
        only_indices=only_indices,
        classes_in_messages=classes_in_messages,
        backend=backend,
    )
    return backward_pass(input, target, tensors, class_mask, options=options, grad_loss=grad_loss, valid=valid)


@_operator.register_fake
def _(input: torch.Tensor, target: torch.Tensor, *rest: Any) -> tuple[torch.Tensor, torch.Tensor]:
    tensors, class_mask, options = rest[:4], rest[4], Options(*rest[5:])
    check_shapes(input, target, tensors, class_mask, options=options)
    return empty_results(input, options.reduction)


@_operator_backward.register_fake
def _(grad_loss: torch.Tensor, valid: torch.Tensor, input: torch.Tensor, *rest: Any) -> torch.Tensor:
    return torch.empty_like(input)


def _keep_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    ctx.save_for_backward(*inputs[:7], output[1])
    ctx.options = inputs[7:]


def _operator_gradient(ctx: Any, grad_loss: torch.Tensor, _: Any) -> tuple[Any, ...]:
    *inputs, valid = ctx.saved_tensors
    gradient = torch.ops.margincal.margin_calibration_backward(grad_loss, valid, *inputs, *ctx.options)
    return gradient, *(None,) * 13


_operator.register_autograd(_operator_gradient, setup_context=_keep_for_backward)
