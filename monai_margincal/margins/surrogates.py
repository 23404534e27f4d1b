"""The margin of a logit vector and the two losses of a margin."""

from __future__ import annotations

import math
from typing import Literal

import torch

__all__ = ["calibrated_log_loss", "logit_margins", "rho_margin_loss"]


def logit_margins(logits: torch.Tensor) -> torch.Tensor:
    """Margin of every class: its logit minus the largest of the others, lambda_ik = s_ik - max_{j != k} s_ij.

    Args:
        logits: floating point, (B, C, *spatial) with C >= 2. Half precision is computed in float32.

    Returns:
        margins of the same shape, float32 or float64. Positive only for the predicted class.

    Raises:
        ValueError: fewer than two channels.

    Source: arXiv:2011.01462, Eq. 4.

    Example:
        >>> logit_margins(torch.tensor([[2.0, 0.5, -1.0]]))
        tensor([[ 1.5000, -1.5000, -3.0000]])
    """
    if logits.ndim < 2 or logits.shape[1] < 2:
        raise ValueError(f"logits have the shape {tuple(logits.shape)}: expected (B, C, *spatial) with C >= 2 classes")
    # in half precision (bfloat16) values above 4 lie 0.03 apart, as wide as a margin: widen before subtracting
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    first, top = logits.max(dim=1, keepdim=True)
    is_top = torch.zeros_like(logits, dtype=torch.bool).scatter_(1, top, True)
    second = logits.masked_fill(is_top, -math.inf).amax(dim=1, keepdim=True)
    return logits - torch.where(is_top, second, first)


def rho_margin_loss(margin: torch.Tensor, rho: torch.Tensor | float) -> torch.Tensor:
    """The rho-margin loss phi_rho(l) = min(1, max(0, 1 - l / rho)): bounds the 0-1 loss from above.

    At rho = 0 it is the 0-1 loss itself, with a tie counted as an error: 1 for l <= 0, else 0.

    Args:
        margin: margins l, floating point, any shape.
        rho: margin-offset >= 0, a number or a tensor that broadcasts with ``margin``.

    Returns:
        losses in [0, 1].

    Raises:
        ValueError: rho is negative or not finite.

    Source: arXiv:2011.01462, Eq. 5 (from Mohri, Rostamizadeh, Talwalkar, "Foundations of Machine Learning", Definition 5.5).

    Example:
        >>> rho_margin_loss(torch.tensor([-1.0, 0.0, 0.5, 2.0]), 1.0)
        tensor([1.0000, 1.0000, 0.5000, 0.0000])
    """
    rho = _checked_rho(margin, rho)
    ramp = (1 - margin / torch.where(rho > 0, rho, 1.0)).clamp(0, 1)
    return torch.where(rho > 0, ramp, (margin <= 0).to(ramp.dtype))


def calibrated_log_loss(margin: torch.Tensor, rho: torch.Tensor | float, base: Literal[2, "e"] = "e") -> torch.Tensor:
    """The rho-calibrated log-loss log_b(1 + b^(rho - l)): smooth, and trained instead of the rho-margin loss.

    In base 2, as printed, it is 1 at l = rho and bounds the rho-margin loss from above for every rho > 0. In base e, the released
    code's choice and cross-entropy's scale, it does so for rho >= ln(e - 1) = 0.541: below that a tie costs less than 1. Divided
    by ln 2, a factor that moves no minimum, it does so in base e for every rho > 0 too.

    Args:
        margin: margins l, floating point, any shape. Half precision is computed in float32.
        rho: margin-offset >= 0, a number or a tensor that broadcasts with ``margin``.
        base: "e" (the released code) or 2 (the printed equation).

    Returns:
        losses >= 0; about rho - l for very negative margins, never an overflow.

    Raises:
        ValueError: rho is negative or not finite, or base is unknown.

    Source: arXiv:2011.01462, "A practical implementation".

    Example:
        >>> calibrated_log_loss(torch.tensor([1.0, 0.0]), 1.0)
        tensor([0.6931, 1.3133])
    """
    if base not in (2, "e"):
        raise ValueError(f"base must be 2 or 'e', found {base!r}")
    margin = margin.to(torch.promote_types(margin.dtype, torch.float32))
    excess = _checked_rho(margin, rho) - margin
    # torch's softplus switches to the identity at its threshold and loses 2e-9 there
    tail = torch.exp2(-excess.abs()) if base == 2 else torch.exp(-excess.abs())
    return excess.clamp_min(0) + torch.log1p(tail) / (math.log(2) if base == 2 else 1.0)


def _checked_rho(margin: torch.Tensor, rho: torch.Tensor | float) -> torch.Tensor:
    rho = torch.as_tensor(rho, dtype=margin.dtype, device=margin.device)
    if not bool(torch.isfinite(rho).all()) or bool((rho < 0).any()):
        raise ValueError(f"rho must be finite and >= 0, found {rho.tolist()}")
    return rho
