"""The figures of a study, one file per idea. Each function gives a matplotlib figure, or None where there is nothing to show."""

from __future__ import annotations

from .canvas import figure_bytes, figure_svg, new_figure
from .classes import class_figure
from .convergence import convergence_figure
from .differences import difference_figure
from .gains import decoder_figure
from .loss_curves import surrogate_figure
from .margins import margin_figure
from .overview import overview_figure
from .panels import panel_figure
from .points_won import points_won, points_won_figure
from .pretraining_curve import pretraining_figure
from .recipe_dots import regret_figure, regret_says
from .sensitivity import sensitivity_figure

__all__ = [
    "class_figure",
    "convergence_figure",
    "decoder_figure",
    "difference_figure",
    "figure_bytes",
    "figure_svg",
    "margin_figure",
    "new_figure",
    "overview_figure",
    "panel_figure",
    "points_won",
    "points_won_figure",
    "pretraining_figure",
    "regret_figure",
    "regret_says",
    "sensitivity_figure",
    "surrogate_figure",
]
