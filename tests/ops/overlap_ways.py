"""The ways to compute the margin loss with the sums of an overlap loss, so that one test proves all of them."""

from __future__ import annotations

import torch
from ops.ways import however_small

from monai_margincal.ops import margin_overlap

#: eager: autograd Function on blocks; operator: what compilers and TorchScript call; compiled: the kernels for the CPU;
#: triton: those for the GPU, interpreted
WAYS = ["eager", "operator", "compiled", "triton"]


def sums_and_gradient(way: str, logits: torch.Tensor, target, values, *, incoming: float = 1.0, **options):
    """(loss, number of valid voxels, sums, valid voxels per case, gradient); every sum has an incoming gradient of its own."""
    logits = logits.detach().requires_grad_()
    defaults = {
        "class_mask": None,
        "base_e": True,
        "include_background": True,
        "ignore_index": None,
        "reduction": "mean",
        "only_indices": False,
        "classes_in_messages": "",
        "backend": {"compiled": "auto", "triton": "triton"}.get(way, "eager"),
        "squared": False,
        "minimum": False,
        "with_margin": True,
    }
    options = {**defaults, **options}
    if way == "operator":
        loss, valid, sums, counted = torch.ops.margincal.margin_overlap(logits, target, *values, *options.values())
    else:
        with however_small(way):
            loss, valid, sums, counted = margin_overlap(logits, target, *values, **options)
    weights = torch.linspace(-1, 1, sums.numel(), dtype=sums.dtype).view(sums.shape)
    with however_small(way):
        (incoming * (loss + (weights * sums).sum())).backward()
    return loss.detach(), int(valid), sums.detach(), counted, logits.grad
