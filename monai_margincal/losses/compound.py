"""Margin calibration together with an overlap loss: the compounds of the paper's best rows.

Both parts see the same voxels: an ignored voxel has probability 0 and target 0 in every channel of the overlap part, put
there by selection, so that NaN logits in it reach neither the value nor a gradient.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from monai.losses import DiceLoss, TverskyLoss
from monai.utils import LossReduction
from torch.nn.modules.loss import _Loss

from ..counting.class_counts import ClassCounts
from ..margins import ClassMargins
from ..ops.targets import plain_tensor
from ._targets import one_hot_target
from .margin_calibration import MarginCalibrationLoss

__all__ = ["MarginCalibrationDiceLoss", "MarginCalibrationTverskyLoss"]


class _MarginCalibrationOverlapLoss(_Loss):
    """The margin-calibrated log-loss and an overlap loss of probabilities, on the same voxels."""

    def __init__(self, margin: MarginCalibrationLoss, overlap: _Loss) -> None:
        super().__init__(reduction=margin.reduction)
        if self.reduction == "none":
            raise ValueError(
                "reduction='none' has no meaning for a sum of a loss per voxel and a loss per class: expected 'mean' or 'sum'"
            )
        self.margin_calibration = margin
        self.overlap = overlap

    def _parts(
        self, input: torch.Tensor, target: torch.Tensor, class_mask: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Margin part and overlap part."""
        input, target = plain_tensor(input), plain_tensor(target)
        # first, because it refuses what is wrong with the target
        margin = self.margin_calibration(input, target, class_mask)
        probabilities, labels, any_valid = self._masked(input, target, class_mask)
        # of nothing an overlap is whatever the smoothing makes of 0/0
        return margin, torch.where(any_valid, self.overlap(probabilities, labels), 0.0)

    def _masked(
        self, input: torch.Tensor, target: torch.Tensor, class_mask: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Probabilities and labels, both 0 in ignored voxels and in classes that were not annotated; is any voxel valid.

        The channels are those that count, (B, N or N - 1, *spatial): without the background where it is left out.
        """
        margin = self.margin_calibration
        labels, valid = one_hot_target(input, target, margin.ignore_index, margin.to_onehot_y, check=False)
        annotated = None
        if class_mask is not None:
            annotated = class_mask.view(*class_mask.shape, *(1,) * (input.ndim - 2))
            valid = valid & (annotated.sum(dim=1, keepdim=True) >= 2)
            labels = labels.masked_fill(~(annotated & valid), 0)
        logits = torch.where(valid, input.to(labels.dtype), 0.0)
        if input.shape[1] == 1:
            # one channel is the foreground alone, as in MONAI's overlap losses
            probabilities, labels = torch.sigmoid(logits), labels[:, 1:]
        else:
            if annotated is not None:
                logits = logits.masked_fill(~annotated & valid, -torch.inf)
            probabilities = torch.softmax(logits, dim=1)
            if not margin.include_background:
                probabilities, labels = probabilities[:, 1:], labels[:, 1:]
        return torch.where(valid, probabilities, 0.0), labels, valid.any()


class MarginCalibrationDiceLoss(_MarginCalibrationOverlapLoss):
    """``lambda_margin`` times `MarginCalibrationLoss` plus ``lambda_dice`` times `monai.losses.DiceLoss`.

    The Dice part is computed on the softmax (for one channel: the sigmoid) of the logits, in float32 or float64. Nothing
    valid: 0, with gradients of 0. For one-channel logits the Dice part has the foreground only, whatever
    ``include_background``. A class that ``class_mask`` leaves out counts as in a case where it is neither present nor predicted.

    Shapes:
        * input: logits (B, N, *spatial), target: every form that `MarginCalibrationLoss` takes; output: scalar.

    Source: the compound "ours + Dice" of arXiv:2011.01462.

    Example:
        >>> loss = MarginCalibrationDiceLoss(to_onehot_y=True, class_counts=[980, 20], include_background=False)
        >>> logits = torch.tensor([[[4.0, -4.0], [-4.0, 4.0]]])
        >>> print(f"{loss(logits, torch.tensor([[[0, 1]]])):.3f}")
        0.006
    """

    def __init__(
        self,
        lambda_margin: float = 1.0,
        lambda_dice: float = 1.0,
        include_background: bool = True,
        to_onehot_y: bool = False,
        class_counts: ClassCounts | Sequence[int] | Mapping[int, int] | str | os.PathLike[str] | None = None,
        margins: ClassMargins | Sequence[Any] | float | None = None,
        tau: float = 1.0,
        upsilon: float = 1.0,
        normalization: Literal["sum", "counts"] = "sum",
        positive_weight: float | Sequence[float] | torch.Tensor = 1.0,
        negative_weight: float | Sequence[float] | torch.Tensor | Literal["mean"] = "mean",
        base: Literal[2, "e"] = 2,
        squared_pred: bool = False,
        jaccard: bool = False,
        reduction: LossReduction | str = LossReduction.MEAN,
        smooth_nr: float = 1e-5,
        smooth_dr: float = 1e-5,
        batch: bool = False,
        weight: Sequence[float] | float | torch.Tensor | None = None,
        soft_label: bool = False,
        ignore_index: int | None = None,
        global_mean: bool = False,
        backend: Literal["auto", "eager", "triton"] = "auto",
    ) -> None:
        """Set up both parts.

        Args:
            lambda_margin: weight of the margin-calibrated log-loss, >= 0.
            lambda_dice: weight of the Dice loss, >= 0.
            include_background: for both parts; see `MarginCalibrationLoss` and `monai.losses.DiceLoss`.
            to_onehot_y: the target must hold class indices. With False every form is taken.
            class_counts: see `MarginCalibrationLoss`, as are ``margins``, ``tau``, ``upsilon``, ``normalization``,
                ``positive_weight``, ``negative_weight``, ``base``, ``ignore_index`` and ``global_mean`` (of the margin part).
            margins: explicit margins.
            tau: scale of the margins from counts.
            upsilon: ratio of positive to negative margins from counts.
            normalization: how margins from counts are scaled.
            positive_weight: weight of the false-negative terms.
            negative_weight: weight of the false-positive terms.
            base: of the logarithm.
            squared_pred: see `monai.losses.DiceLoss`, as are ``jaccard``, ``smooth_nr``, ``smooth_dr``, ``batch``,
                ``weight`` and ``soft_label``.
            jaccard: Jaccard index instead of Dice.
            reduction: "mean" or "sum", for both parts.
            smooth_nr: added to the numerator of Dice.
            smooth_dr: added to the denominator of Dice.
            batch: sum over the batch before dividing.
            weight: Dice weight per class; without the background if ``include_background`` is False.
            soft_label: the formulation of Dice for soft labels.
            ignore_index: label of voxels that do not count, in both parts.
            global_mean: average the margin part over the voxels of all processes.
            backend: of the margin part.

        Raises:
            ValueError: as `MarginCalibrationLoss`; a lambda is negative; ``reduction="none"``.
        """
        _check_lambdas(lambda_margin=lambda_margin, lambda_dice=lambda_dice)
        margin = MarginCalibrationLoss(
            include_background=include_background,
            to_onehot_y=to_onehot_y,
            class_counts=class_counts,
            margins=margins,
            tau=tau,
            upsilon=upsilon,
            normalization=normalization,
            positive_weight=positive_weight,
            negative_weight=negative_weight,
            base=base,
            reduction=reduction,
            ignore_index=ignore_index,
            global_mean=global_mean,
            backend=backend,
        )
        overlap = DiceLoss(
            squared_pred=squared_pred,
            jaccard=jaccard,
            reduction=reduction,
            smooth_nr=smooth_nr,
            smooth_dr=smooth_dr,
            batch=batch,
            weight=weight,
            soft_label=soft_label,
        )
        super().__init__(margin, overlap)
        self.lambda_margin = lambda_margin
        self.lambda_dice = lambda_dice

    def forward(
        self, input: torch.Tensor, target: torch.Tensor, class_mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Compute the loss.

        Args:
            input: logits (B, N, *spatial).
            target: class indices (B, 1, *spatial) or (B, *spatial), or one-hot / soft labels (B, N, *spatial).
            class_mask: bool (B, C), False for a class that was not annotated in a case; its logit's gradient is exactly 0.

        Returns:
            a scalar, float32 or float64.

        Raises:
            ValueError: as `MarginCalibrationLoss.forward`.
        """
        margin, dice = self._parts(input, target, class_mask)
        return self.lambda_margin * margin + self.lambda_dice * dice


class MarginCalibrationTverskyLoss(_MarginCalibrationOverlapLoss):
    """``lambda_margin`` times `MarginCalibrationLoss` plus ``lambda_tversky`` times `monai.losses.TverskyLoss`.

    The Tversky part is computed on the softmax (for one channel: the sigmoid) of the logits, in float32 or float64. Nothing
    valid: 0, with gradients of 0. For one-channel logits the Tversky part has the foreground only, whatever
    ``include_background``. A class that ``class_mask`` leaves out counts as in a case where it is neither present nor predicted.

    Shapes:
        * input: logits (B, N, *spatial), target: every form that `MarginCalibrationLoss` takes; output: scalar.

    Source: the compound "ours + Tversky" of arXiv:2011.01462.

    Example:
        >>> loss = MarginCalibrationTverskyLoss(to_onehot_y=True, class_counts=[980, 20], include_background=False)
        >>> logits = torch.tensor([[[4.0, -4.0], [-4.0, 4.0]]])
        >>> print(f"{loss(logits, torch.tensor([[[0, 1]]])):.3f}")
        0.006
    """

    def __init__(
        self,
        lambda_margin: float = 1.0,
        lambda_tversky: float = 1.0,
        include_background: bool = True,
        to_onehot_y: bool = False,
        class_counts: ClassCounts | Sequence[int] | Mapping[int, int] | str | os.PathLike[str] | None = None,
        margins: ClassMargins | Sequence[Any] | float | None = None,
        tau: float = 1.0,
        upsilon: float = 1.0,
        normalization: Literal["sum", "counts"] = "sum",
        positive_weight: float | Sequence[float] | torch.Tensor = 1.0,
        negative_weight: float | Sequence[float] | torch.Tensor | Literal["mean"] = "mean",
        base: Literal[2, "e"] = 2,
        alpha: float = 0.3,
        beta: float = 0.7,
        reduction: LossReduction | str = LossReduction.MEAN,
        smooth_nr: float = 1e-5,
        smooth_dr: float = 1e-5,
        batch: bool = False,
        soft_label: bool = False,
        ignore_index: int | None = None,
        global_mean: bool = False,
        backend: Literal["auto", "eager", "triton"] = "auto",
    ) -> None:
        """Set up both parts.

        Args:
            lambda_margin: weight of the margin-calibrated log-loss, >= 0.
            lambda_tversky: weight of the Tversky loss, >= 0.
            include_background: for both parts; see `MarginCalibrationLoss` and `monai.losses.TverskyLoss`.
            to_onehot_y: the target must hold class indices. With False every form is taken.
            class_counts: see `MarginCalibrationLoss`, as are ``margins``, ``tau``, ``upsilon``, ``normalization``,
                ``positive_weight``, ``negative_weight``, ``base``, ``ignore_index`` and ``global_mean`` (of the margin part).
            margins: explicit margins.
            tau: scale of the margins from counts.
            upsilon: ratio of positive to negative margins from counts.
            normalization: how margins from counts are scaled.
            positive_weight: weight of the false-negative terms.
            negative_weight: weight of the false-positive terms.
            base: of the logarithm.
            alpha: Tversky weight of the false positives.
            beta: Tversky weight of the false negatives.
            reduction: "mean" or "sum", for both parts.
            smooth_nr: see `monai.losses.TverskyLoss`, as are ``smooth_dr``, ``batch`` and ``soft_label``; added to the
                numerator of Tversky.
            smooth_dr: added to the denominator of Tversky.
            batch: sum over the batch before dividing.
            soft_label: the formulation of Tversky for soft labels.
            ignore_index: label of voxels that do not count, in both parts.
            global_mean: average the margin part over the voxels of all processes.
            backend: of the margin part.

        Raises:
            ValueError: as `MarginCalibrationLoss`; a lambda is negative; ``reduction="none"``.
        """
        _check_lambdas(lambda_margin=lambda_margin, lambda_tversky=lambda_tversky)
        margin = MarginCalibrationLoss(
            include_background=include_background,
            to_onehot_y=to_onehot_y,
            class_counts=class_counts,
            margins=margins,
            tau=tau,
            upsilon=upsilon,
            normalization=normalization,
            positive_weight=positive_weight,
            negative_weight=negative_weight,
            base=base,
            reduction=reduction,
            ignore_index=ignore_index,
            global_mean=global_mean,
            backend=backend,
        )
        overlap = TverskyLoss(
            alpha=alpha,
            beta=beta,
            reduction=reduction,
            smooth_nr=smooth_nr,
            smooth_dr=smooth_dr,
            batch=batch,
            soft_label=soft_label,
        )
        super().__init__(margin, overlap)
        self.lambda_margin = lambda_margin
        self.lambda_tversky = lambda_tversky

    def forward(
        self, input: torch.Tensor, target: torch.Tensor, class_mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Compute the loss.

        Args:
            input: logits (B, N, *spatial).
            target: class indices (B, 1, *spatial) or (B, *spatial), or one-hot / soft labels (B, N, *spatial).
            class_mask: bool (B, C), False for a class that was not annotated in a case; its logit's gradient is exactly 0.

        Returns:
            a scalar, float32 or float64.

        Raises:
            ValueError: as `MarginCalibrationLoss.forward`.
        """
        margin, tversky = self._parts(input, target, class_mask)
        return self.lambda_margin * margin + self.lambda_tversky * tversky


def _check_lambdas(**lambdas: float) -> None:
    for name, value in lambdas.items():
        if not value >= 0:
            raise ValueError(f"{name} must be >= 0, found {value!r}")
