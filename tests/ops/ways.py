"""The ways to compute the loss, so that one test proves all of them."""

from __future__ import annotations

import torch

from monai_margincal.ops import margin_calibration

#: eager: autograd Function on blocks; operator: what compilers and TorchScript call
WAYS = ["eager", "operator"]


def loss_and_gradient(way: str, logits: torch.Tensor, target, terms, *, incoming=None, **options):
    """(loss, number of valid voxels, gradient); ``incoming`` is the gradient that comes in from behind the loss."""
    logits = logits.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    if way == "eager":
        loss, valid = margin_calibration(logits, target, *terms, **options)
    else:
        loss, valid = torch.ops.margincal.margin_calibration(
            logits,
            target,
            *terms,
            options.get("class_mask"),
            options.get("natural", False),
            options.get("include_background", True),
            options.get("ignore_index"),
            options.get("reduction", "mean"),
            options.get("only_indices", False),
            options.get("names", ""),
        )
    loss.backward(torch.ones_like(loss) if incoming is None else incoming)
    return loss.detach(), int(valid), logits.grad
