"""The ways to compute the loss, so that one test proves all of them."""

from __future__ import annotations

import contextlib
from unittest import mock

import torch

from monai_margincal.ops import cpu_launch, margin_calibration

#: eager: autograd Function on blocks; operator: what compilers and TorchScript call; triton: the GPU kernels, interpreted;
#: compiled: the kernels for the CPU
WAYS = ["eager", "operator", "triton", "compiled"]
#: those that compute in float32
SINGLE = ["triton", "compiled"]


def however_small(way: str) -> contextlib.AbstractContextManager:
    """The compiled kernels take problems of any size."""
    if way != "compiled":
        return contextlib.nullcontext()
    return mock.patch.multiple(cpu_launch, _LEAST_LOGITS=0, _LEAST_VOXELS=1)


def terms(classes: int) -> list[torch.Tensor]:
    """Random margins and weights."""
    return [torch.rand(classes) for _ in range(4)]


def loss_and_gradient(way: str, logits: torch.Tensor, target, values, *, incoming=None, **options):
    """(loss, number of valid voxels, gradient); ``incoming`` is the gradient that comes in from behind the loss."""
    logits = logits.detach().requires_grad_()
    backend = {"triton": "triton", "compiled": "auto"}.get(way, "eager")
    if way == "operator":
        loss, valid = torch.ops.margincal.margin_calibration(
            logits,
            target,
            *values,
            options.get("class_mask"),
            options.get("base_e", True),
            options.get("include_background", True),
            options.get("ignore_index"),
            options.get("reduction", "mean"),
            options.get("only_indices", False),
            options.get("classes_in_messages", ""),
            backend,
        )
    else:
        with however_small(way):
            loss, valid = margin_calibration(logits, target, *values, backend=backend, **options)
    with however_small(way):
        loss.backward(torch.ones_like(loss) if incoming is None else incoming)
    return loss.detach(), int(valid), logits.grad
