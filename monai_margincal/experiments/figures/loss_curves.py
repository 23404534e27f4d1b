"""The two losses of a margin, as curves."""

from __future__ import annotations

from typing import Any

import torch

from ...margins import calibrated_log_loss, rho_margin_loss
from ...palette import SERIES
from .canvas import new_figure


def surrogate_figure() -> Any:
    """The rho-margin loss that the bound is about, and the calibrated log-loss that is trained, for several rho."""
    figure = new_figure(10, 3.6)
    axes = figure.subplots(1, 3, sharey=True)
    margin = torch.linspace(-3, 5, 801, dtype=torch.float64)
    kinds = (
        ("rho-margin loss (the bound)", lambda rho: rho_margin_loss(margin, rho)),
        ("calibrated log-loss, base 2", lambda rho: calibrated_log_loss(margin, rho, 2)),
        ("calibrated log-loss, base e", lambda rho: calibrated_log_loss(margin, rho, "e")),
    )
    for axis, (title, curve) in zip(axes, kinds, strict=True):
        for rho, colour in zip((0.0, 0.5, 1.0, 2.0), SERIES, strict=False):
            axis.plot(margin, curve(rho), color=colour, label=f"ρ = {rho:g}")
        axis.plot(margin, (margin <= 0).double(), color="black", linewidth=0.8, linestyle=":", label="0-1 loss")
        axis.set(title=title, xlabel="margin λ", ylim=(0, 4))
        axis.grid(alpha=0.25)
    axes[0].set_ylabel("loss")
    axes[0].legend(frameon=False)
    return figure
