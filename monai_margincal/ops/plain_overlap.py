"""The sums of an overlap loss in tensor operations of whole size, differentiated by autograd.

For what the fused computation does not take: `torch.func` transforms, batches of incoming gradients, and devices where kernels
compute the margin loss. An ignored voxel has probability 0 and label 0 in every class, put there by selection, so that NaN
logits in it reach neither the value nor a gradient.
"""

from __future__ import annotations

import torch

from .overlap_passes import OverlapOptions
from .targets import one_hot_target

__all__ = ["plain_overlap_sums"]


def plain_overlap_sums(
    input: torch.Tensor, target: torch.Tensor, class_mask: torch.Tensor | None, options: OverlapOptions
) -> tuple[torch.Tensor, torch.Tensor]:
    """The sums (B, 3, C) and the valid voxels per case (B,) of `margin_overlap`, for a target that was checked before."""
    labels, valid = one_hot_target(input, target, options.ignore_index, options.only_indices, check=False)
    logits = input.to(labels.dtype)
    if input.shape[1] == 1:
        logits = torch.cat([torch.zeros_like(logits), logits], dim=1)
    seen = valid
    if class_mask is not None:
        annotated = class_mask.view(*class_mask.shape, *(1,) * (input.ndim - 2))
        valid = valid & (annotated.sum(dim=1, keepdim=True) >= 2)
        seen = valid & annotated
        labels = labels.masked_fill(~seen, 0)
    logits = torch.where(valid, logits, 0.0)
    if class_mask is not None:
        logits = logits.masked_fill(valid & ~seen, -torch.inf)
    probabilities = torch.where(seen, torch.softmax(logits, dim=1), 0.0)
    if options.minimum:
        hits = torch.minimum(probabilities, labels)
    else:
        hits = probabilities * labels
    if options.squared:
        probabilities, labels = probabilities.square(), labels.square()
    parts = [part.flatten(2).sum(dim=2, dtype=torch.float64) for part in (hits, probabilities, labels)]
    return torch.stack(parts, dim=1), valid.flatten(1).sum(dim=1)
