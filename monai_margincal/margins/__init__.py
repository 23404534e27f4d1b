"""The equations of the paper as pure functions: margins from class counts, surrogate losses, bounds.

One file per group of equations:

* `class_margins`: margin-offsets per class from label counts (Corollary 1.1);
* `surrogates`: the margin of a logit vector, the rho-margin loss, the rho-calibrated log-loss;
* `bounds`: the IoU lower bound (Eq. 7) and the generalization bound (Theorem 1).

Source: Li, Yu, Zhang, "Distribution-aware Margin Calibration for Medical Image Segmentation" (arXiv:2011.01462); extended in
IJCV 130(1):95-110, 2022 (arXiv:2112.11554).
"""

from __future__ import annotations

from .bounds import BoundTerms, GeneralizationBound, MeanIoUBound, generalization_bound, miou_lower_bound
from .class_margins import ClassMargins, class_margins
from .surrogates import calibrated_log_loss, logit_margins, rho_margin_loss

__all__ = [
    "BoundTerms",
    "ClassMargins",
    "GeneralizationBound",
    "MeanIoUBound",
    "calibrated_log_loss",
    "class_margins",
    "generalization_bound",
    "logit_margins",
    "miou_lower_bound",
    "rho_margin_loss",
]
