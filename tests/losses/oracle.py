"""The paper's loss, transcribed literally into NumPy loops: slow, and independent of the package."""

from __future__ import annotations

import math

import numpy as np


def _phi(margin: float, rho: float, base_e: bool) -> float:
    """varphi_rho(l) = log2(1 + 2^(rho - l)), or its natural-log form, computed so that it does not overflow."""
    unit = 1.0 if base_e else math.log(2.0)
    z = (rho - margin) * unit
    return (max(z, 0.0) + math.log1p(math.exp(-abs(z)))) / unit


def _slope(margin: float, rho: float, base_e: bool) -> float:
    """d varphi_rho / dl = -sigma((rho - l))."""
    z = (rho - margin) * (1.0 if base_e else math.log(2.0))
    return -1.0 / (1.0 + math.exp(-z)) if z >= 0 else -math.exp(z) / (1.0 + math.exp(z))


def oracle(
    logits,
    target,
    margin_negative,
    margin_positive,
    negative_weight,
    positive_weight,
    *,
    valid=None,
    annotated=None,
    base_e=True,
    include_background=True,
):
    """Loss per voxel, its gradient, and which voxels count.

    logits (B, C, V) or (B, 1, V); target (B, V) class indices or (B, C, V) shares; valid (B, V) bool; annotated (B, C) bool. The
    gradient is that of the SUM over voxels. Ties: the first of the largest logits.
    """
    logits = np.asarray(logits, dtype=np.float64)
    one_channel = logits.shape[1] == 1
    if one_channel:
        logits = np.concatenate([np.zeros_like(logits), logits], axis=1)
    batch, classes, voxels = logits.shape
    target = np.asarray(target)
    valid = np.ones((batch, voxels), bool) if valid is None else np.asarray(valid)
    losses, gradient = np.zeros((batch, voxels)), np.zeros_like(logits)
    for b in range(batch):
        competing = [k for k in range(classes) if annotated is None or annotated[b][k]]
        for i in range(voxels):
            if not valid[b, i] or len(competing) < 2:
                continue
            s = logits[b, :, i]
            for k in competing:
                if k == 0 and not include_background:
                    continue
                rivals = [j for j in competing if j != k]
                rival = max(rivals, key=lambda j: (s[j], -j))  # first index wins
                margin = float(s[k] - s[rival])
                share = float(target[b, k, i]) if target.ndim == 3 else float(target[b, i] == k)
                positive, negative = positive_weight[k] * share, negative_weight[k] * (1 - share)
                losses[b, i] += positive * _phi(margin, margin_positive[k], base_e)
                losses[b, i] += negative * _phi(-margin, margin_negative[k], base_e)
                slope = positive * _slope(margin, margin_positive[k], base_e)
                slope -= negative * _slope(-margin, margin_negative[k], base_e)
                gradient[b, k, i] += slope
                gradient[b, rival, i] -= slope
    return losses, gradient[:, 1:] if one_channel else gradient, valid
