"""Forward and backward pass of the loss: arguments are checked, then the kernels or the blockwise computation does the work."""

from __future__ import annotations

import math
import os
from typing import Any, NamedTuple

import torch

from ..extras import install_command
from .block import ClassTerms
from .cpu_ways import way_for
from .targets import holds_class_indices, with_channel
from .voxel_blocks import TargetForm

__all__ = [
    "Options",
    "backward_pass",
    "check_shapes",
    "check_values",
    "chosen_backend",
    "compute_dtype",
    "empty_results",
    "forward_pass",
    "kernels_for",
    "prepared",
]

_REDUCTIONS = ("none", "mean", "sum")
_BACKENDS = ("auto", "eager", "triton")
_BACKEND_VARIABLE = "MARGINCAL_KERNEL"


class Options(NamedTuple):
    """Everything that is not a tensor."""

    base_e: bool
    include_background: bool
    ignore_index: int | None
    reduction: str
    only_indices: bool
    classes_in_messages: str
    backend: str


def forward_pass(
    input: torch.Tensor,
    target: torch.Tensor,
    tensors: tuple[torch.Tensor, ...],
    class_mask: torch.Tensor | None,
    *,
    options: Options,
    gradient: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss and number of valid voxels; fills ``gradient``, for an incoming gradient of 1, where given."""
    holds_indices = check_shapes(input, target, tensors, class_mask, options=options)
    if input.device.type == "meta":
        return empty_results(input, options.reduction)
    check_values(tensors)
    kernels = kernels_for(input, target, holds_indices, options)
    if kernels is not None:
        return kernels.kernel_forward(
            input,
            with_channel(input, target),
            ClassTerms(*tensors),
            classes_in_messages=options.classes_in_messages,
            **for_kernels(class_mask, options),
        )
    target, form, terms = prepared(input, target, tensors, class_mask, options=options, holds_indices=holds_indices)
    way = way_for(input, target, form, chosen_backend(options.backend))
    count = way.voxels(input, target, form)
    valid = torch.tensor(count, dtype=torch.int64, device=input.device)
    loss_map, dtype = None, compute_dtype(input)
    if options.reduction == "none":
        loss_map = torch.empty((input.shape[0], 1, *input.shape[2:]), dtype=dtype, device=input.device)
    share = 1.0 / max(count, 1) if options.reduction == "mean" else 1.0
    scale = torch.tensor(share, dtype=dtype, device=input.device)
    total = way.loss(
        input,
        target,
        form,
        terms,
        base_e=options.base_e,
        loss_map=loss_map,
        gradient=gradient,
        gradient_scale=scale,
    )
    if loss_map is not None:
        return loss_map, valid
    return (total / max(count, 1) if options.reduction == "mean" else total).to(dtype), valid


def backward_pass(
    input: torch.Tensor,
    target: torch.Tensor,
    tensors: tuple[torch.Tensor, ...],
    class_mask: torch.Tensor | None,
    *,
    options: Options,
    grad_loss: torch.Tensor,
    valid: torch.Tensor,
) -> torch.Tensor:
    """Gradient of the logits, multiplied by the incoming gradient before it is rounded to the logits' dtype."""
    if input.device.type == "meta":
        return torch.empty_like(input)
    holds_indices = check_shapes(input, target, tensors, class_mask, options=options)
    kernels = kernels_for(input, target, holds_indices, options)
    if kernels is not None:
        return kernels.kernel_backward(
            input,
            with_channel(input, target),
            ClassTerms(*tensors),
            grad_loss=grad_loss,
            valid=valid,
            **for_kernels(class_mask, options),
        )
    gradient = torch.empty_like(input)
    target, form, terms = prepared(input, target, tensors, class_mask, options=options, holds_indices=holds_indices)
    scale = grad_loss / valid.clamp_min(1) if options.reduction == "mean" else grad_loss
    way = way_for(input, target, form, chosen_backend(options.backend))
    way.loss(input, target, form, terms, base_e=options.base_e, gradient=gradient, gradient_scale=scale)
    return gradient


def chosen_backend(backend: str) -> str:
    """The argument, or for "auto" the environment variable."""
    chosen = os.environ.get(_BACKEND_VARIABLE) or "auto" if backend == "auto" else backend
    if chosen not in _BACKENDS:
        source = f"the environment variable {_BACKEND_VARIABLE}" if backend == "auto" else "backend"
        raise ValueError(f"{source} must be one of {', '.join(map(repr, _BACKENDS))}, found {chosen!r}")
    return chosen


def kernels_for(input: torch.Tensor, target: torch.Tensor, holds_indices: bool, options: Options) -> Any:
    """The module with the Triton kernels where they are to be used, else None."""
    chosen = chosen_backend(options.backend)
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


def for_kernels(class_mask: torch.Tensor | None, options: Options) -> dict[str, Any]:
    """What all Triton kernels are told besides tensors."""
    return {
        "class_mask": class_mask,
        "ignore_index": options.ignore_index,
        "include_background": options.include_background,
        "base_e": options.base_e,
        "reduction": options.reduction,
    }


def prepared(
    input: torch.Tensor,
    target: torch.Tensor,
    tensors: tuple[torch.Tensor, ...],
    class_mask: torch.Tensor | None,
    *,
    options: Options,
    holds_indices: bool,
) -> tuple[torch.Tensor, TargetForm, ClassTerms]:
    """What the blockwise computation works on: every class has its margins and weights, in the dtype of the computation."""
    num_classes, dtype = max(input.shape[1], 2), compute_dtype(input)
    terms = ClassTerms(*(tensor.to(device=input.device, dtype=dtype).expand(num_classes) for tensor in tensors))
    if not options.include_background:
        foreground = torch.ones(num_classes, dtype=dtype, device=input.device)
        foreground[0] = 0
        terms = terms._replace(
            negative_weight=terms.negative_weight * foreground, positive_weight=terms.positive_weight * foreground
        )
    form = TargetForm(
        holds_indices,
        num_classes,
        ignore_index=options.ignore_index,
        class_mask=class_mask,
        classes_in_messages=options.classes_in_messages,
    )
    return with_channel(input, target), form, terms


def check_shapes(
    input: torch.Tensor,
    target: torch.Tensor,
    tensors: tuple[torch.Tensor, ...],
    class_mask: torch.Tensor | None,
    *,
    options: Options,
) -> bool:
    """Check all that can be checked without looking at a value; return whether the target holds class indices."""
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


def check_values(tensors: tuple[torch.Tensor, ...]) -> None:
    """Margins and weights may have been changed since they were checked; on a device, looking at them would mean waiting."""
    for name, tensor in zip(ClassTerms._fields, tensors, strict=True):
        if tensor.device.type == "cpu" and not (float(tensor.min()) >= 0 and float(tensor.max()) < math.inf):
            raise ValueError(f"{name} must be finite and >= 0, found {tensor.tolist()}")


def compute_dtype(input: torch.Tensor) -> torch.dtype:
    return torch.promote_types(input.dtype, torch.float32)


def empty_results(input: torch.Tensor, reduction: str) -> tuple[torch.Tensor, torch.Tensor]:
    shape = (input.shape[0], 1, *input.shape[2:]) if reduction == "none" else ()
    return input.new_empty(shape, dtype=compute_dtype(input)), input.new_empty((), dtype=torch.int64)
