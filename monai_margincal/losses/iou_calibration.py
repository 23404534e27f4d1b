"""Margins and weights that follow the IoU during training: two modes of our own, in addition to the paper's.

Neither is in the paper. Both start from the same observation: the IoU J of a class is best served by predicting it wherever its
probability exceeds J / (1 + J), which is at most 1/2, while the paper's rho_0k of a rare class pushes that threshold above 1/2.

* `IoUCalibratedMargins` moves the threshold with margins on the positive side;
* `BoundWeights` moves it with the weights of the false-negative and the false-positive terms: the paper's own lower bound of the
  IoU, with the denominators that the paper drops, linearised at running whole-set statistics.

A controller watches logits and labels step by step and writes into the buffers of a margin calibration loss. Call ``update``
after ``backward()``: the buffers are part of the graph until then. `monai_margincal.training.LossControllerHandler` does so in a
MONAI trainer.
"""

from __future__ import annotations

import abc
import math
from typing import Any

import torch
from torch import nn

from .running_confusion import RunningConfusion

__all__ = [
    "BoundWeights",
    "IoUCalibratedMargins",
    "LossController",
    "iou_calibrated_margin",
    "iou_optimal_threshold",
]

_BUFFERS = ("margin_negative", "margin_positive", "negative_weight", "positive_weight")


def iou_optimal_threshold(iou: torch.Tensor | float) -> torch.Tensor:
    """The probability above which a voxel should be given to a class whose best IoU is J: J / (1 + J).

    Adding a voxel of probability eta to the prediction raises the intersection by eta and the union by 1 - eta, so it pays
    exactly if eta / (1 - eta) > J.

    Args:
        iou: J in [0, 1], any shape.

    Returns:
        thresholds in [0, 1/2].

    Raises:
        ValueError: an IoU is outside [0, 1].

    Example:
        >>> iou_optimal_threshold(torch.tensor([0.0, 0.5, 1.0]))
        tensor([0.0000, 0.3333, 0.5000])
    """
    iou = _checked_iou(iou)
    return iou / (1 + iou)


def iou_calibrated_margin(iou: torch.Tensor | float, maximum: float = 2.0, base_e: bool = True) -> torch.Tensor:
    """The positive-side margin with which the loss decides at the IoU-optimal threshold: rho = -ln(2J - 1).

    For two classes and a false-positive weight w, the margin calibration loss of a voxel with class-1 probability eta is smallest
    at a positive margin, so that class 1 is predicted, if and only if eta > N / (N + M), with

        N = s(rho_00) + w s(rho_01),   M = s(rho_10) + w s(rho_00'),   s(x) = 1 / (1 + e^-x),

    rho_00 the positive-side margin of the background, rho_01 the negative-side one of class 1, rho_10 the positive-side one of
    class 1 and rho_00' the negative-side one of the background. N / M = J, the ratio that the threshold J / (1 + J) asks for,
    with zero margins in N and equal ones in M gives s(rho) = 1 / (2J). In base 2, s(x) = 1 / (1 + 2^-x), and the margin is the
    same number divided by ln 2: rho = -log2(2J - 1).

    Args:
        iou: J in [0, 1], any shape.
        maximum: bound of the margin, also its value for J <= 1/2, where no finite margin reaches the threshold.
        base_e: for a loss of base e; False: for one of base 2.

    Returns:
        margins in [0, maximum], 0 at J = 1.

    Raises:
        ValueError: an IoU is outside [0, 1], or ``maximum`` is negative or not finite.

    Example:
        >>> iou_calibrated_margin(torch.tensor([0.4, 0.75, 1.0]))
        tensor([2.0000, 0.6931, 0.0000])
    """
    iou = _checked_iou(iou)
    if not (math.isfinite(maximum) and maximum >= 0):
        raise ValueError(f"maximum must be finite and >= 0, found {maximum!r}")
    margin = 0.0 - torch.log2((2 * iou - 1).clamp_min(0))  # infinite at J <= 1/2, then bounded; 0.0 - 0 is not -0
    return (margin * math.log(2) if base_e else margin).clamp(0.0, maximum)


def _checked_iou(iou: torch.Tensor | float) -> torch.Tensor:
    if not isinstance(iou, torch.Tensor):
        iou = torch.as_tensor(iou)  # which takes a tensor to the default device
    if not iou.is_floating_point():
        iou = iou.to(torch.float32)
    # values on a GPU are not checked: that would wait for the device in every step
    if iou.device.type == "cpu" and not bool(((iou >= 0) & (iou <= 1)).all()):
        raise ValueError(f"IoUs must be in [0, 1], found {iou.tolist()}")
    return iou


class LossController(nn.Module, abc.ABC):
    """What both modes share: running statistics, the loss they write into, and their state.

    ``state_dict()`` holds the statistics; loading it writes margins or weights into the loss again.
    """

    _loss: Any

    def __init__(
        self, loss: nn.Module, momentum: float = 0.98, warmup: int = 10, ignore_index: int | None = None
    ) -> None:
        super().__init__()
        if warmup < 0:
            raise ValueError(f"warmup must be >= 0 steps, found {warmup!r}")
        target = _margin_calibration_in(loss)
        # not a submodule: its buffers are saved with the loss, not a second time here
        object.__setattr__(self, "_loss", target)
        classes = max(getattr(target, name).numel() for name in _BUFFERS)
        if min(getattr(target, name).numel() for name in _BUFFERS) != classes or classes < 2:
            raise ValueError(
                "the loss has to know its classes: found margins or weights of one entry for all classes, expected one for each "
                "(give class_counts or margins)"
            )
        self.warmup = warmup
        device = target.margin_negative.device
        if ignore_index is None:
            ignore_index = getattr(target, "ignore_index", None)
        self.statistics = RunningConfusion(classes, momentum, ignore_index).to(device)
        self.register_load_state_dict_post_hook(_write_after_loading)

    def update(self, logits: torch.Tensor, target: torch.Tensor) -> None:
        """Watch one step; from the ``warmup``-th step on, set the loss.

        Args:
            logits: as the loss takes them, (B, C, *spatial).
            target: as the loss takes it.

        Raises:
            ValueError: the shapes do not fit.
        """
        device: torch.device = self._loss.margin_negative.device
        if self.statistics.average.device != device:
            self.statistics.to(device)
        self.statistics.update(logits, target)
        self._write()

    @torch.no_grad()
    def _write(self) -> None:
        ready = self.statistics.updates >= max(self.warmup, 1)
        for name, value in self._values().items():
            buffer = getattr(self._loss, name)
            # chosen on the device: asking for the step number would wait for it
            buffer.copy_(torch.where(ready.to(buffer.device), value.to(buffer), buffer))

    @abc.abstractmethod
    def _values(self) -> dict[str, torch.Tensor]:
        """New content of the loss's buffers, by name."""

    @property
    def _natural(self) -> bool:
        return bool(getattr(self._loss, "base_e", False))


def _write_after_loading(module: nn.Module, _: Any) -> None:
    module._write()  # type: ignore[operator]


def _margin_calibration_in(loss: nn.Module) -> Any:
    """The part of a (compound) loss whose margins and weights can be set."""
    for module in loss.modules():
        if all(isinstance(getattr(module, name, None), torch.Tensor) for name in _BUFFERS):
            return module
    raise ValueError(
        f"loss is a {type(loss).__name__}: expected a MarginCalibrationLoss or a compound that holds one ({', '.join(_BUFFERS)})"
    )


class IoUCalibratedMargins(LossController):
    """Sets the margins of a loss from the running IoU of every class: rho = -ln(2 J_k - 1), a mode of ours.

    The positive-side margin of every class but 0, the background, becomes `iou_calibrated_margin` of its running IoU; the
    negative-side margin of the background becomes their mean, weighted by the classes' voxels (with two classes that is the same
    number). All other margins become 0. For a loss of base 2 they are in its units, -log2(2 J_k - 1). The better a class is
    segmented, the smaller its margin. The identity behind it holds for two classes; with more it is a heuristic.

    Args:
        loss: a `MarginCalibrationLoss`, or a compound that holds one; its margins are overwritten.
        momentum: of the moving average, see `RunningConfusion`.
        maximum: bound of the margins; the value of a class with an IoU of at most 1/2.
        warmup: steps that are only watched before the first margins are set.
        ignore_index: label of voxels that do not count; default: that of the loss.

    Raises:
        ValueError: an argument is outside its range, or there is no margin calibration in ``loss``.

    Example:
        >>> from monai_margincal.losses import MarginCalibrationLoss
        >>> loss = MarginCalibrationLoss(margins=([0.0, 0.0], [0.0, 0.0]))
        >>> controller = IoUCalibratedMargins(loss, warmup=0)
        >>> labels = torch.tensor([[1, 1, 1, 0]])
        >>> logits = torch.tensor([[[0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]]])  # J_1 = 3/4
        >>> controller.update(logits, labels)
        >>> loss.margin_positive
        tensor([0.0000, 0.6931])
    """

    def __init__(
        self,
        loss: nn.Module,
        momentum: float = 0.98,
        maximum: float = 2.0,
        warmup: int = 10,
        ignore_index: int | None = None,
    ) -> None:
        super().__init__(loss, momentum, warmup, ignore_index)
        if not (math.isfinite(maximum) and maximum >= 0):
            raise ValueError(f"maximum must be finite and >= 0, found {maximum!r}")
        self.maximum = maximum

    def _values(self) -> dict[str, torch.Tensor]:
        # rounding of the average may leave 1 + 1e-16
        margin = iou_calibrated_margin(self.statistics.iou.clamp(0, 1), self.maximum, self._natural)
        positive = margin.clone()
        positive[0] = 0
        share = self.statistics.frequencies[1:]
        total = share.sum()
        weighted = (share * margin[1:]).sum() / torch.where(total > 0, total, 1.0)
        negative = torch.zeros_like(margin)
        negative[0] = torch.where(total > 0, weighted, margin[1:].mean())
        return {"margin_negative": negative, "margin_positive": positive}


class BoundWeights(LossController):
    """Sets the weights of a loss so that it descends the paper's own lower bound of the mean IoU, a mode of ours.

    The bound of class k is (p_k - l_k0) / (p_k + l_0k). Its derivatives at running whole-set statistics, with U_k the union's
    share of the voxels and J_k the IoU, are -1 / U_k for the false-negative term l_k0 and -J_k / U_k for the false-positive term
    l_0k. So the weights become, with C classes,

        positive_weight_k = 1 / (C U_k),    negative_weight_k = J_k / (C U_k).

    Their ratio gives the decision threshold J_k / (1 + J_k), the one that is best for the IoU, and 1 / U_k gives every class an
    equal share of the mean, however rare it is. Margins are left unchanged.

    Args:
        loss: a `MarginCalibrationLoss`, or a compound that holds one; its weights are overwritten.
        momentum: of the moving average, see `RunningConfusion`.
        minimum_union: U_k is taken as at least this, so that a class that has hardly been seen yet keeps a finite weight.
        warmup: steps that are only watched before the first weights are set.
        ignore_index: label of voxels that do not count; default: that of the loss.

    Raises:
        ValueError: an argument is outside its range, or there is no margin calibration in ``loss``.

    Example:
        >>> from monai_margincal.losses import MarginCalibrationLoss
        >>> loss = MarginCalibrationLoss(margins=([0.0, 0.0], [0.0, 0.0]))
        >>> controller = BoundWeights(loss, warmup=0)
        >>> logits = torch.tensor([[[2.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, -1.0]]])  # predicts 0, 1, 1, 0
        >>> controller.update(logits, torch.tensor([[0, 1, 0, 0]]))  # U = (3/4, 2/4), J = (2/3, 1/2)
        >>> loss.positive_weight, loss.negative_weight
        (tensor([0.6667, 1.0000]), tensor([0.4444, 0.5000]))
    """

    def __init__(
        self,
        loss: nn.Module,
        momentum: float = 0.98,
        minimum_union: float = 1e-4,
        warmup: int = 10,
        ignore_index: int | None = None,
    ) -> None:
        super().__init__(loss, momentum, warmup, ignore_index)
        if not 0 < minimum_union <= 1:
            raise ValueError(f"minimum_union must be in (0, 1], found {minimum_union!r}")
        self.minimum_union = minimum_union

    def _values(self) -> dict[str, torch.Tensor]:
        union = self.statistics.union.clamp_min(self.minimum_union)
        positive = 1 / (union * len(union))
        return {"positive_weight": positive, "negative_weight": positive * self.statistics.iou}
