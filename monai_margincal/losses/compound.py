"""Margin calibration together with an overlap loss: the compounds of the paper's best rows.

Both parts see the same voxels, and read them together, once in each pass: beside the logits a training step holds their gradient
and little else. With ``lambda_margin=0`` what remains is the overlap loss alone, computed in the same way. An ignored voxel has
probability 0 and target 0 in every channel of the overlap part. Ignored is not absent: what has no voxel that counts takes no
part in the mean of the overlap part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch.nn.modules.loss import _Loss

from ..ops import margin_overlap
from .margin_calibration import MarginCalibrationLoss
from .margin_options import MarginOptions, shows_margin_options
from .overlap import OverlapLoss

if TYPE_CHECKING:
    from typing import Unpack

__all__ = ["MarginCalibrationDiceLoss", "MarginCalibrationTverskyLoss"]


class _MarginCalibrationOverlapLoss(_Loss):
    """The margin-calibrated log-loss and an overlap loss of probabilities, on the same voxels and in one pass over them."""

    if TYPE_CHECKING:  # TorchScript reads annotations of classes, but not this one
        #: is shown what each part adds to every value, detached: `monai_margincal.training.LossPartsHandler`
        on_parts: Callable[[torch.Tensor, torch.Tensor], None] | None

    def __init__(self, lambda_margin: float, margin: MarginCalibrationLoss, overlap: OverlapLoss) -> None:
        super().__init__(reduction=margin.reduction)
        if self.reduction == "none":
            raise ValueError(
                "reduction='none' has no meaning for a sum of a loss per voxel and a loss per class: expected 'mean' or 'sum'"
            )
        # as a float: a compiled script tells integers from floats
        self.lambda_margin = float(lambda_margin)
        self.margin_calibration = margin
        self.overlap = overlap
        self.on_parts = None

    def _lambda_overlap(self) -> float:
        """Weight of the overlap part."""
        raise NotImplementedError

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
        margin = self.margin_calibration
        reduction = "sum" if margin.global_mean else margin.reduction
        squared = self.overlap.order == 2
        minimum = self.overlap.soft_label and not squared
        with_margin = self.lambda_margin != 0
        if torch.jit.is_scripting():
            loss, valid, sums, voxels = torch.ops.margincal.margin_overlap(
                input,
                target,
                margin.margin_negative,
                margin.margin_positive,
                margin.false_positive_weight(input),
                margin.positive_weight,
                class_mask,
                margin.base_e,
                margin.include_background,
                margin.ignore_index,
                reduction,
                margin.to_onehot_y,
                margin.classes_in_messages,
                margin.backend,
                squared,
                minimum,
                with_margin,
            )
        else:
            loss, valid, sums, voxels = margin_overlap(
                input,
                target,
                margin.margin_negative,
                margin.margin_positive,
                negative_weight=margin.false_positive_weight(input),
                positive_weight=margin.positive_weight,
                class_mask=class_mask,
                base_e=margin.base_e,
                include_background=margin.include_background,
                ignore_index=margin.ignore_index,
                reduction=reduction,
                only_indices=margin.to_onehot_y,
                classes_in_messages=margin.classes_in_messages,
                backend=margin.backend,
                squared=squared,
                minimum=minimum,
                with_margin=with_margin,
            )
        loss = margin.over_ranks(loss, valid)
        counted = (voxels > 0).unsqueeze(1).expand(sums.shape[0], sums.shape[2])
        # one channel is the foreground alone, as in MONAI's overlap losses
        first = 1 if input.shape[1] == 1 or not margin.include_background else 0
        if class_mask is not None and input.shape[1] > 1:
            counted = counted & class_mask
        overlap = self.overlap(sums[:, :, first:], counted[:, first:]).to(loss.dtype)
        loss, overlap = self.lambda_margin * loss, self._lambda_overlap() * overlap
        # a compiled loss owns its results: they may be overwritten by the next step
        if not torch.jit.is_scripting() and self.on_parts is not None and not torch.compiler.is_compiling():
            self.on_parts(loss.detach(), overlap.detach())
        return loss + overlap


class MarginCalibrationDiceLoss(_MarginCalibrationOverlapLoss):
    """``lambda_margin`` times `MarginCalibrationLoss` plus ``lambda_dice`` times `monai.losses.DiceLoss`.

    The Dice part is computed on the softmax (for one channel: the sigmoid) of the logits, in float32 or float64. Nothing
    valid: 0, with gradients of 0. For one-channel logits the Dice part has the foreground only, whatever
    ``include_background``. What was not annotated, a wholly ignored case as well as a class
    that ``class_mask`` leaves out in a case, takes no part in the mean, where MONAI's own loss counts it as perfect.

    Shapes:
        * input: logits (B, N, *spatial), target: every form that `MarginCalibrationLoss` takes; output: scalar.

    Source: the compound "ours + Dice" of arXiv:2011.01462.

    Example:
        >>> loss = MarginCalibrationDiceLoss(to_onehot_y=True, class_counts=[980, 20], include_background=False)
        >>> logits = torch.tensor([[[4.0, -4.0], [-4.0, 4.0]]])
        >>> print(f"{loss(logits, torch.tensor([[[0, 1]]])):.3f}")
        0.001
    """

    @shows_margin_options
    def __init__(
        self,
        lambda_margin: float = 1.0,
        lambda_dice: float = 1.0,
        *,
        squared_pred: bool = False,
        jaccard: bool = False,
        smooth_nr: float = 1e-5,
        smooth_dr: float = 1e-5,
        batch: bool = False,
        weight: Sequence[float] | float | torch.Tensor | None = None,
        soft_label: bool = False,
        **margin: Unpack[MarginOptions],
    ) -> None:
        """Set up both parts.

        Args:
            lambda_margin: weight of the margin-calibrated log-loss, >= 0.
            lambda_dice: weight of the Dice loss, >= 0.
            squared_pred: see `monai.losses.DiceLoss`.
            jaccard: Jaccard index instead of Dice.
            smooth_nr: added to the numerator of Dice.
            smooth_dr: added to the denominator of Dice.
            batch: sum over the batch before dividing.
            weight: Dice weight per class; without the background if ``include_background`` is False.
            soft_label: the formulation of Dice for soft labels.
            **margin: the arguments of `MarginCalibrationLoss`. ``include_background``, ``to_onehot_y``, ``reduction`` ("mean" or
                "sum") and ``ignore_index`` hold for both parts.

        Raises:
            ValueError: as `MarginCalibrationLoss`; a lambda is negative; ``reduction="none"``.
        """
        _check_lambdas(lambda_margin=lambda_margin, lambda_dice=lambda_dice)
        margin_part = MarginCalibrationLoss(**margin)
        share = 1.0 if jaccard else 0.5
        overlap = OverlapLoss(
            share,
            share,
            smooth_nr=smooth_nr,
            smooth_dr=smooth_dr,
            factor=2.0,
            squared_pred=squared_pred,
            soft_label=soft_label,
            batch=batch,
            weight=weight,
            reduction=margin_part.reduction,
        )
        super().__init__(lambda_margin, margin_part, overlap)
        self.lambda_dice = float(lambda_dice)

    def _lambda_overlap(self) -> float:
        return self.lambda_dice


class MarginCalibrationTverskyLoss(_MarginCalibrationOverlapLoss):
    """``lambda_margin`` times `MarginCalibrationLoss` plus ``lambda_tversky`` times `monai.losses.TverskyLoss`.

    The Tversky part is computed on the softmax (for one channel: the sigmoid) of the logits, in float32 or float64. Nothing
    valid: 0, with gradients of 0. For one-channel logits the Tversky part has the foreground only, whatever
    ``include_background``. What was not annotated, a wholly ignored case as well as a class
    that ``class_mask`` leaves out in a case, takes no part in the mean, where MONAI's own loss counts it as perfect.

    Shapes:
        * input: logits (B, N, *spatial), target: every form that `MarginCalibrationLoss` takes; output: scalar.

    Source: the compound "ours + Tversky" of arXiv:2011.01462.

    Example:
        >>> loss = MarginCalibrationTverskyLoss(to_onehot_y=True, class_counts=[980, 20], include_background=False)
        >>> logits = torch.tensor([[[4.0, -4.0], [-4.0, 4.0]]])
        >>> print(f"{loss(logits, torch.tensor([[[0, 1]]])):.3f}")
        0.001
    """

    @shows_margin_options
    def __init__(
        self,
        lambda_margin: float = 1.0,
        lambda_tversky: float = 1.0,
        *,
        alpha: float = 0.3,
        beta: float = 0.7,
        smooth_nr: float = 1e-5,
        smooth_dr: float = 1e-5,
        batch: bool = False,
        soft_label: bool = False,
        **margin: Unpack[MarginOptions],
    ) -> None:
        """Set up both parts.

        Args:
            lambda_margin: weight of the margin-calibrated log-loss, >= 0.
            lambda_tversky: weight of the Tversky loss, >= 0.
            alpha: Tversky weight of the false positives.
            beta: Tversky weight of the false negatives.
            smooth_nr: see `monai.losses.TverskyLoss`; added to the numerator of Tversky.
            smooth_dr: added to the denominator of Tversky.
            batch: sum over the batch before dividing.
            soft_label: the formulation of Tversky for soft labels.
            **margin: the arguments of `MarginCalibrationLoss`. ``include_background``, ``to_onehot_y``, ``reduction`` ("mean" or
                "sum") and ``ignore_index`` hold for both parts.

        Raises:
            ValueError: as `MarginCalibrationLoss`; a lambda is negative; ``reduction="none"``.
        """
        _check_lambdas(lambda_margin=lambda_margin, lambda_tversky=lambda_tversky)
        margin_part = MarginCalibrationLoss(**margin)
        overlap = OverlapLoss(
            alpha,
            beta,
            smooth_nr=smooth_nr,
            smooth_dr=smooth_dr,
            soft_label=soft_label,
            batch=batch,
            reduction=margin_part.reduction,
        )
        super().__init__(lambda_margin, margin_part, overlap)
        self.lambda_tversky = float(lambda_tversky)

    def _lambda_overlap(self) -> float:
        return self.lambda_tversky


def _check_lambdas(**lambdas: float) -> None:
    for name, value in lambdas.items():
        if not value >= 0:
            raise ValueError(f"{name} must be >= 0, found {value!r}")
