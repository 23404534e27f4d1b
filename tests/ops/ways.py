"""The ways to compute the loss, so that one test proves all of them."""

from __future__ import annotations

import torch

from monai_margincal.ops import margin_calibration

#: eager: autograd Function on blocks; operator: what compilers and TorchScript call; triton: the GPU kernels, interpreted
WAYS = ["eager", "operator", "triton"]


def terms(classes: int) -> list[torch.Tensor]:
    """Random margins and weights."""
    return [torch.rand(classes) for _ in range(4)]


def loss_and_gradient(way: str, logits: torch.Tensor, target, values, *, incoming=None, **options):
    """(loss, number of valid voxels, gradient); ``incoming`` is the gradient that comes in from behind the loss."""
    logits = logits.detach().requires_grad_()
    backend = "triton" if way == "triton" else "eager"
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
            options.get("names", ""),
            backend,
        )
    else:
        loss, valid = margin_calibration(logits, target, *values, backend=backend, **options)
    loss.backward(torch.ones_like(loss) if incoming is None else incoming)
    return loss.detach(), int(valid), logits.grad
