"""The compounds as the weighted sum of two losses, each with its own passes over tensors of whole size: slow, and simple."""

from __future__ import annotations

import torch
from monai.losses.utils import compute_tp_fp_fn

from monai_margincal import MarginCalibrationTverskyLoss


def sum_of_parts(loss, input, target, class_mask=None):
    """What a compound gives, from its margin part, `torch.softmax` and MONAI's counts of true and false positives."""
    margin, settings = loss.margin_calibration, loss.overlap
    probabilities, labels, counted = _masked(margin, input, target, class_mask)
    axes = [axis for axis in range(input.ndim) if axis > 1 or (axis == 0 and settings.batch)]
    counted = counted.any(dim=0) if settings.batch else counted
    hit, false, missed = compute_tp_fp_fn(
        probabilities,
        labels,
        axes,
        ord=settings.order,
        soft_label=settings.soft_label,
        decoupled=not isinstance(loss, MarginCalibrationTverskyLoss),
    )
    union = hit + settings.alpha * false + settings.beta * missed
    losses = 1.0 - (settings.factor * hit + settings.smooth_nr) / (settings.factor * union + settings.smooth_dr)
    if settings.class_weight is not None and probabilities.shape[1] != 1:
        losses = losses * settings.class_weight.to(losses)
    overlap = torch.where(counted, losses, 0.0).sum()
    if settings.reduction == "mean":
        overlap = overlap / counted.sum().clamp_min(1)
    weight = loss.lambda_tversky if isinstance(loss, MarginCalibrationTverskyLoss) else loss.lambda_dice
    return loss.lambda_margin * margin(input, target, class_mask) + weight * overlap


def _masked(margin, input, target, class_mask):
    """Probabilities and labels (B, C, *spatial), 0 where a voxel or a class does not count; which classes of which cases do."""
    classes, dtype = max(input.shape[1], 2), torch.promote_types(input.dtype, torch.float32)
    spatial = (1,) * (input.ndim - 2)
    ignored = torch.zeros(input.shape[0], 1, *input.shape[2:], dtype=torch.bool)
    target = target.unsqueeze(1) if target.ndim == input.ndim - 1 else target
    if target.shape[1] == classes:
        labels = target.to(dtype)
        if margin.ignore_index is not None:
            ignored = (labels == margin.ignore_index).all(dim=1, keepdim=True)
            if 0 <= margin.ignore_index < classes:
                ignored |= labels[:, margin.ignore_index, None] == 1
    else:
        if margin.ignore_index is not None:
            ignored = target == margin.ignore_index
        ids = torch.arange(classes).view(1, -1, *spatial)
        one_hot = torch.cat([1 - target.to(dtype), target.to(dtype)], dim=1)
        labels = one_hot if input.shape[1] == 1 and target.is_floating_point() else (target == ids).to(dtype)
    valid = ~ignored
    annotated = torch.ones(input.shape[0], classes, dtype=torch.bool) if class_mask is None else class_mask
    valid = valid & (annotated.sum(1) >= 2).view(-1, 1, *spatial)
    seen = valid & annotated.view(*annotated.shape, *spatial)
    logits = input.to(dtype)
    if input.shape[1] == 1:
        logits = torch.cat([torch.zeros_like(logits), logits], dim=1)
    logits = torch.where(valid, logits, 0.0).masked_fill(valid & ~seen, -torch.inf)
    probabilities = torch.where(seen, torch.softmax(logits, dim=1), 0.0)
    labels = torch.where(seen, labels, 0.0)
    counted = valid.flatten(1).any(1, keepdim=True)
    if input.shape[1] == 1:
        return probabilities[:, 1:], labels[:, 1:], counted
    counted = counted & annotated
    first = 0 if margin.include_background else 1
    return probabilities[:, first:], labels[:, first:], counted[:, first:]
