"""The margin-calibrated log-loss as one differentiable operation with its analytic gradient.

Two ways lead to the same code: eager calls go through an autograd Function; `torch.compile`, `torch.export` and TorchScript go
through the registered operator ``torch.ops.margincal.margin_calibration``, which they treat as one opaque step. A second
derivative is refused.

On a CPU the eager way computes the gradient while the block is in the cache anyway, and hands it over in backward; everywhere
else backward computes it afresh from the logits, already multiplied by the incoming gradient, so that a scaled half-precision
gradient is rounded once.
"""

from __future__ import annotations

import math
import os
from typing import Any, NamedTuple

import torch

from ..extras import install_command
from .blockwise import ClassTerms, Reading, blockwise_loss, count_valid
from .targets import holds_class_indices, plain_tensor, stands_in, with_channel

__all__ = ["margin_calibration"]

_REDUCTIONS = ("none", "mean", "sum")
_BACKENDS = ("auto", "eager", "triton")
_BACKEND_VARIABLE = "MARGINCAL_KERNEL"


class _Options(NamedTuple):
    """Everything that is not a tensor."""

    natural: bool
    include_background: bool
    ignore_index: int | None
    reduction: str
    only_indices: bool
    names: str
    backend: str


def margin_calibration(
    input: torch.Tensor,
    target: torch.Tensor,
    margin_negative: torch.Tensor,
    margin_positive: torch.Tensor,
    negative_weight: torch.Tensor,
    positive_weight: torch.Tensor,
    *,
    class_mask: torch.Tensor | None = None,
    natural: bool = False,
    include_background: bool = True,
    ignore_index: int | None = None,
    reduction: str = "mean",
    only_indices: bool = False,
    names: str = "",
    backend: str = "auto",
) -> tuple[torch.Tensor, torch.Tensor]:
    """Margin-calibrated log-loss, with margins and weights as tensors that may change between calls.

    For every valid voxel of class y: w+_y phi(rho_y0 - lambda_y) + sum_{k != y} w-_k phi(lambda_k + rho_0k), with
    lambda_k = s_k - max_{j != k} s_j and phi(z) = log2(1 + 2^z), or ln(1 + e^z) if ``natural``. At a tie the gradient takes the
    first of the largest logits. Nothing valid: 0, with zero gradients.

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
        natural: natural logarithm instead of base 2.
        include_background: if False, both terms of class 0 are left out; its logit still competes in the maximum.
        ignore_index: label of voxels that do not count.
        reduction: "mean" (over valid voxels, summed over classes), "sum", or "none".
        only_indices: refuse targets with one value per class.
        names: what the classes are called, for messages.
        backend: "triton" for the GPU kernels of `triton_kernels`, "eager" for plain tensor operations, "auto" for the
            kernels wherever they can run; the environment variable MARGINCAL_KERNEL says what "auto" is.

    Returns:
        the loss, float32 (float64 for float64 logits): a scalar, or (B, 1, *spatial) for "none" with 0 in ignored voxels;
        and the number of valid voxels, an int64 scalar.

    Raises:
        ValueError: shapes do not fit, an undeclared label, overlapping one-hot channels, a voxel of a class that was not
            annotated, a negative or non-finite margin or weight (looked at on a CPU only). The GPU kernels do not wait to
            tell an undeclared label or a class that was not annotated: the loss is NaN, and the error comes with the next
            call, or with `monai_margincal.ops.triton_launch.raise_for_undeclared_labels`.
        TypeError: ``input`` is not floating point.

    Source: arXiv:2011.01462, the rho-calibrated log-loss of "A practical implementation".

    Example:
        >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
        >>> zero, one = torch.zeros(2), torch.ones(2)
        >>> loss, valid = margin_calibration(logits, torch.tensor([0, 1]), zero, zero, one, one)
        >>> print(f"{loss:.4f}", int(valid))
        0.9069 2
    """
    input, target = plain_tensor(input), plain_tensor(target)
    tensors = (margin_negative, margin_positive, negative_weight, positive_weight)
    class_mask = None if class_mask is None else plain_tensor(class_mask)
    options = _Options(natural, include_background, ignore_index, reduction, only_indices, names, backend)
    if torch.compiler.is_compiling() or stands_in(input):
        return torch.ops.margincal.margin_calibration(input, target, *tensors, class_mask, *options)
    wants_gradient = torch.is_grad_enabled() and input.requires_grad
    return _MarginCalibration.apply(input, target, *tensors, class_mask, options, wants_gradient)


class _MarginCalibration(torch.autograd.Function):
    """Eager way in."""

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
        options: _Options,
        wants_gradient: bool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        tensors = (margin_negative, margin_positive, negative_weight, positive_weight)
        # half precision is rounded after scaling, which only backward can do
        early = (
            wants_gradient
            and input.device.type == "cpu"
            and input.dtype in (torch.float32, torch.float64)
            and _chosen_backend(options.backend) != "triton"
        )
        ctx.gradient = torch.empty_like(input) if early else None
        loss, valid = _forward(input, target, tensors, class_mask, options, ctx.gradient)
        ctx.save_for_backward(input, target, *tensors, class_mask, valid)
        ctx.options = options
        ctx.mark_non_differentiable(valid)
        return loss, valid

    @staticmethod
    def backward(ctx: Any, grad_loss: torch.Tensor, _: Any) -> tuple[Any, ...]:
        input, target, *tensors, class_mask, valid = ctx.saved_tensors
        # given away: a second backward through a retained graph computes it again
        gradient, ctx.gradient = ctx.gradient, None
        with torch.no_grad():
            # an infinite incoming gradient would turn the 0 of ignored voxels into NaN
            if gradient is None or not bool(torch.isfinite(grad_loss).all()):
                gradient = _backward(input, target, tuple(tensors), class_mask, ctx.options, grad_loss, valid)
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
        raise RuntimeError(
            "the margin-calibrated loss has no second derivative: its gradient was differentiated (create_graph=True), expected "
            "at most one backward pass through the loss"
        )


def _forward(
    input: torch.Tensor,
    target: torch.Tensor,
    tensors: tuple[torch.Tensor, ...],
    class_mask: torch.Tensor | None,
    options: _Options,
    gradient: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss and number of valid voxels; fills ``gradient``, for an incoming gradient of 1, where given."""
    holds_indices = _check_shapes(input, target, tensors, class_mask, options)
    if input.device.type == "meta":
        return _empty_results(input, options.reduction)
    _check_values(tensors)
    kernels = _kernels(input, target, holds_indices, options)
    if kernels is not None:
        return kernels.kernel_forward(
            input,
            with_channel(input, target),
            ClassTerms(*tensors),
            names=options.names,
            **_for_kernels(class_mask, options),
        )
    target, reading, terms = _prepare(input, target, tensors, class_mask, options, holds_indices)
    count = count_valid(input, target, reading)
    valid = torch.tensor(count, dtype=torch.int64, device=input.device)
    loss_map, dtype = None, _compute_dtype(input)
    if options.reduction == "none":
        loss_map = torch.empty((input.shape[0], 1, *input.shape[2:]), dtype=dtype, device=input.device)
    share = 1.0 / max(count, 1) if options.reduction == "mean" else 1.0
    scale = torch.tensor(share, dtype=dtype, device=input.device)
    total = blockwise_loss(input, target, reading, terms, options.natural, loss_map, gradient, scale)
    if loss_map is not None:
        return loss_map, valid
    return (total / max(count, 1) if options.reduction == "mean" else total).to(dtype), valid


def _backward(
    input: torch.Tensor,
    target: torch.Tensor,
    tensors: tuple[torch.Tensor, ...],
    class_mask: torch.Tensor | None,
    options: _Options,
    grad_loss: torch.Tensor,
    valid: torch.Tensor,
) -> torch.Tensor:
    """Gradient of the logits, multiplied by the incoming gradient before it is rounded to the logits' dtype."""
    if input.device.type == "meta":
        return torch.empty_like(input)
    holds_indices = _check_shapes(input, target, tensors, class_mask, options)
    kernels = _kernels(input, target, holds_indices, options)
    if kernels is not None:
        return kernels.kernel_backward(
            input,
            with_channel(input, target),
            ClassTerms(*tensors),
            grad_loss,
            valid,
            **_for_kernels(class_mask, options),
        )
    gradient = torch.empty_like(input)
    target, reading, terms = _prepare(input, target, tensors, class_mask, options, holds_indices)
    scale = grad_loss / valid.clamp_min(1) if options.reduction == "mean" else grad_loss
    blockwise_loss(input, target, reading, terms, options.natural, gradient=gradient, gradient_scale=scale)
    return gradient


def _chosen_backend(backend: str) -> str:
    """The argument, or for "auto" the environment variable."""
    chosen = os.environ.get(_BACKEND_VARIABLE) or "auto" if backend == "auto" else backend
    if chosen not in _BACKENDS:
        source = f"the environment variable {_BACKEND_VARIABLE}" if backend == "auto" else "backend"
        raise ValueError(f"{source} must be one of {', '.join(map(repr, _BACKENDS))}, found {chosen!r}")
    return chosen


def _kernels(input: torch.Tensor, target: torch.Tensor, holds_indices: bool, options: _Options) -> Any:
    """The module with the Triton kernels where they are to be used, else None."""
    chosen = _chosen_backend(options.backend)
    if chosen == "eager" or (chosen == "auto" and input.device.type != "cuda"):
        return None
    try:
        from . import triton_launch
    except ImportError as error:
        if chosen == "auto":
            return None
        raise ImportError(
            f"the backend 'triton' needs triton, 3.3 or newer, which cannot be imported ({error}): {install_command('triton')}"
        ) from error
    refused = triton_launch.not_taken(input, target, holds_indices)
    if not refused and not triton_launch.runs_on(input.device):
        refused = f"tensors on {input.device} (without TRITON_INTERPRET=1)"
    if not refused:
        return triton_launch
    if chosen == "triton":
        raise ValueError(f"the backend 'triton' does not take {refused}: expected backend 'auto' or 'eager' for these")
    return None


def _for_kernels(class_mask: torch.Tensor | None, options: _Options) -> dict[str, Any]:
    return {
        "class_mask": class_mask,
        "ignore_index": options.ignore_index,
        "include_background": options.include_background,
        "natural": options.natural,
        "reduction": options.reduction,
    }


def _prepare(
    input: torch.Tensor,
    target: torch.Tensor,
    tensors: tuple[torch.Tensor, ...],
    class_mask: torch.Tensor | None,
    options: _Options,
    holds_indices: bool,
) -> tuple[torch.Tensor, Reading, ClassTerms]:
    """What the blockwise computation works on: every class has its margins and weights, in the dtype of the computation."""
    num_classes, dtype = max(input.shape[1], 2), _compute_dtype(input)
    terms = ClassTerms(*(tensor.to(device=input.device, dtype=dtype).expand(num_classes) for tensor in tensors))
    if not options.include_background:
        foreground = torch.ones(num_classes, dtype=dtype, device=input.device)
        foreground[0] = 0
        terms = terms._replace(
            negative_weight=terms.negative_weight * foreground, positive_weight=terms.positive_weight * foreground
        )
    reading = Reading(holds_indices, num_classes, options.ignore_index, class_mask, options.names)
    return with_channel(input, target), reading, terms


def _check_shapes(
    input: torch.Tensor,
    target: torch.Tensor,
    tensors: tuple[torch.Tensor, ...],
    class_mask: torch.Tensor | None,
    options: _Options,
) -> bool:
    """All that can be told without a value; returns whether the target holds class indices."""
    if options.reduction not in _REDUCTIONS:
        raise ValueError(f"reduction must be one of {', '.join(map(repr, _REDUCTIONS))}, found {options.reduction!r}")
    holds_indices = holds_class_indices(input, target, options.only_indices)
    if target.device != input.device:
        raise ValueError(f"target is on {target.device}, input on {input.device}: expected one device")
    num_classes = max(input.shape[1], 2)
    if class_mask is not None and (class_mask.dtype != torch.bool or class_mask.shape != (input.shape[0], num_classes)):
        raise ValueError(
            f"class_mask has the shape {tuple(class_mask.shape)} and the dtype {class_mask.dtype}: expected bool "
            f"{(input.shape[0], num_classes)}, one row per case and one column per class"
        )
    for name, tensor in zip(ClassTerms._fields, tensors, strict=True):
        if tensor.ndim != 1 or tensor.shape[0] not in (1, num_classes):
            flag = "" if options.include_background else ", the background among them although include_background=False"
            channel = " (one-channel logits stand for two classes)" if input.shape[1] == 1 else ""
            raise ValueError(
                f"{name} has the shape {tuple(tensor.shape)}, input has the shape {tuple(input.shape)}: expected "
                f"({num_classes},), one entry per class{flag}{channel}"
            )
    return holds_indices


def _check_values(tensors: tuple[torch.Tensor, ...]) -> None:
    """Margins and weights may have been changed since they were checked; on a device one would have to wait to see them."""
    for name, tensor in zip(ClassTerms._fields, tensors, strict=True):
        if tensor.device.type == "cpu" and not (float(tensor.min()) >= 0 and float(tensor.max()) < math.inf):
            raise ValueError(f"{name} must be finite and >= 0, found {tensor.tolist()}")


def _compute_dtype(input: torch.Tensor) -> torch.dtype:
    return torch.promote_types(input.dtype, torch.float32)


def _empty_results(input: torch.Tensor, reduction: str) -> tuple[torch.Tensor, torch.Tensor]:
    shape = (input.shape[0], 1, *input.shape[2:]) if reduction == "none" else ()
    return input.new_empty(shape, dtype=_compute_dtype(input)), input.new_empty((), dtype=torch.int64)


@torch.library.custom_op("margincal::margin_calibration", mutates_args=())
def _operator(
    input: torch.Tensor,
    target: torch.Tensor,
    margin_negative: torch.Tensor,
    margin_positive: torch.Tensor,
    negative_weight: torch.Tensor,
    positive_weight: torch.Tensor,
    class_mask: torch.Tensor | None,
    natural: bool,
    include_background: bool,
    ignore_index: int | None,
    reduction: str,
    only_indices: bool,
    names: str,
    backend: str,
) -> tuple[torch.Tensor, torch.Tensor]:
    tensors = (margin_negative, margin_positive, negative_weight, positive_weight)
    options = _Options(natural, include_background, ignore_index, reduction, only_indices, names, backend)
    return _forward(input, target, tensors, class_mask, options)


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
    natural: bool,
    include_background: bool,
    ignore_index: int | None,
    reduction: str,
    only_indices: bool,
    names: str,
    backend: str,
) -> torch.Tensor:
    tensors = (margin_negative, margin_positive, negative_weight, positive_weight)
    options = _Options(natural, include_background, ignore_index, reduction, only_indices, names, backend)
    return _backward(input, target, tensors, class_mask, options, grad_loss, valid)


@_operator.register_fake
def _(input: torch.Tensor, target: torch.Tensor, *rest: Any) -> tuple[torch.Tensor, torch.Tensor]:
    tensors, class_mask, options = rest[:4], rest[4], _Options(*rest[5:])
    _check_shapes(input, target, tensors, class_mask, options)
    return _empty_results(input, options.reduction)


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
