"""The two losses of a margin, as curves."""

from __future__ import annotations

from typing import Any

import torch

from ...margins import calibrated_log_loss, rho_margin_loss
from ...palette import BLACK, SERIES
from .canvas import add_header, new_figure, tidy

_SAYS = (
    "The larger the margin ρ, the farther to the right a loss still asks for more: the one in the bound is 0 from ρ on, the "
    "trained one never is. At λ = ρ it is 1 in base 2 and 0.69 in base e."
)


def surrogate_figure() -> Any:
    """The rho-margin loss that the bound is about, and the calibrated log-loss that is trained, for several rho."""
    figure = new_figure(2.6)
    from matplotlib.lines import Line2D

    axes = figure.subplots(1, 3, sharey=True)
    margin = torch.linspace(-3, 5, 801, dtype=torch.float64)
    kinds = (
        ("rho-margin loss (the bound)", lambda rho: rho_margin_loss(margin, rho)),
        ("calibrated log-loss, base 2", lambda rho: calibrated_log_loss(margin, rho, 2)),
        ("calibrated log-loss, base e", lambda rho: calibrated_log_loss(margin, rho, "e")),
    )
    shown = dict(zip((0.0, 0.5, 1.0, 2.0), (BLACK, *SERIES), strict=False))
    for axis, (title, curve) in zip(axes, kinds, strict=True):
        for rho, colour in shown.items():
            axis.plot(margin, curve(rho), color=colour, linewidth=1.4)
        axis.plot(margin, (margin <= 0).double(), color=BLACK, linewidth=0.8, linestyle=":")
        axis.set(ylim=(0, 4), xlim=(-3, 5))
        axis.set_title(title, fontsize=9.5)
        axis.set_xlabel("margin λ", fontsize=9)
        tidy(axis, "both")
    axes[0].set_ylabel("loss", fontsize=9)
    handles = [Line2D([], [], color=colour, label=f"ρ = {rho:g}") for rho, colour in shown.items()]
    handles.append(Line2D([], [], color=BLACK, linewidth=0.8, linestyle=":", label="0-1 loss"))
    return add_header(figure, _SAYS, handles, columns=5)
