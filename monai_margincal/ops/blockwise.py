"""The margin-calibrated log-loss and its gradient, block of voxels by block of voxels, in plain tensor operations.

A block is small enough for its few temporaries to stay in the cache, so apart from the logits memory holds the gradient
and little else, and each block is read from the logits once. What is computed for a block is in `block`.
"""

from __future__ import annotations

import torch

from .block import ClassTerms, Workspace
from .voxel_blocks import TargetForm, blocks_of, flattened, read_target, voxels_per_block

__all__ = ["blockwise_loss"]


def blockwise_loss(
    logits: torch.Tensor,
    target: torch.Tensor,
    form: TargetForm,
    terms: ClassTerms,
    *,
    base_e: bool,
    loss_map: torch.Tensor | None = None,
    gradient: torch.Tensor | None = None,
    gradient_scale: torch.Tensor | None = None,
) -> torch.Tensor:
    """Sum of the loss over all valid voxels; on request the loss per voxel and the gradient of the logits.

    Args:
        logits: (B, N, *spatial), any strides; N = 1 stands for two classes with the logits 0 and s.
        target: (B, 1, *spatial) class indices, or (B, N, *spatial) soft labels.
        form: how to read it.
        terms: margins and weights per class.
        base_e: natural logarithm; otherwise base 2.
        loss_map: (B, 1, *spatial), is filled with the loss of every voxel.
        gradient: like ``logits``, is filled with the gradient.
        gradient_scale: what to multiply the gradient by: one number, or one per voxel (B, 1, *spatial). Default 1.

    Returns:
        the sum, a float64 scalar.

    Raises:
        ValueError: see `targets`; a voxel is labelled with a class that was not annotated in its case.
    """
    per_voxel = gradient_scale is not None and gradient_scale.ndim > 0
    others = (loss_map, gradient, gradient_scale)
    logits, target, loss_map, gradient, gradient_scale = flattened(logits, target, *others)
    voxels = voxels_per_block(logits, form.num_classes)
    workspace = Workspace(
        logits, terms, voxels=voxels, base_e=base_e, gradient_scale=None if per_voxel else gradient_scale
    )
    total = torch.zeros((), dtype=torch.float64, device=logits.device)
    for block in blocks_of(logits, voxels):
        labels, valid = read_target(target, block, form)
        if valid is not None and logits.device.type == "cpu" and not bool(valid.any()):
            for filled in (loss_map, gradient):
                if filled is not None:
                    filled[block] = 0
            continue
        annotated = None if form.class_mask is None else form.class_mask[block[0], :, None]
        losses, slopes = workspace.compute(
            logits[block],
            labels,
            valid,
            annotated,
            holds_indices=form.holds_indices,
            want_gradient=gradient is not None,
        )
        total += losses.sum(dtype=torch.float64)
        if loss_map is not None:
            loss_map[block] = losses.view(loss_map[block].shape)
        if gradient is not None and slopes is not None:
            if per_voxel and gradient_scale is not None:
                slopes = slopes * gradient_scale[block].reshape(losses.shape)
                if valid is not None:  # 0 times an infinite scale
                    slopes = slopes.masked_fill(~valid, 0)
            gradient[block] = slopes.view(gradient[block].shape)
    return total
