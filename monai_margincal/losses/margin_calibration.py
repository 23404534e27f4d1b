"""The margin-calibrated log-loss as a MONAI loss."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from monai.utils import LossReduction
from torch.nn.modules.loss import _Loss

from ..counting.class_counts import ClassCounts
from ..margins import ClassMargins, class_margins
from ..ops import margin_calibration
from .buffers import HoldsSettings

__all__ = ["MarginCalibrationLoss"]

_PER_CLASS = ("margin_negative", "margin_positive", "negative_weight", "positive_weight")


class MarginCalibrationLoss(HoldsSettings, _Loss):
    """Log-loss whose decision margins are calibrated by the class frequencies, so that training aims at the IoU.

    With the margin of a class lambda_ik = s_ik - max_{j != k} s_ij and the rho-calibrated log-loss
    phi_rho(l) = ln(1 + e^(rho - l))::

        L = (1/n) sum_k [ w+_k sum_{i in Y_k} phi_{rho_k0}(lambda_ik) + w-_k sum_{i not in Y_k} phi_{rho_0k}(-lambda_ik) ]

    over the n valid voxels. The first sum is the false-negative term of class k, the second the false-positive term. The
    margins rho_0k (``margin_negative``) and rho_k0 (``margin_positive``) come from ``class_counts`` by Corollary 1.1
    (`monai_margincal.margins.class_margins`) or are given as ``margins``. They are differences of logits, in units of the
    logarithm's base: a margin of 1 multiplies the odds asked for by e, in base 2 by 2. ``tau`` is the sum of all rho_0k (with
    "sum"): any number >= 0, useful between 0 (no margins) and the spread of the network's logits (a few units). Logits are
    taken as they are and never normalised.

    Edge cases:

    * nothing valid: 0, with gradients of 0 and a live graph. An ignored voxel changes nothing, whatever its logits, NaN
      included;
    * two equal largest logits: the subgradient that takes the first of them;
    * a logit beyond 2^100 (2^1000 in float64), infinite ones included, counts as 2^100: finite logits, and infinite ones
      too, give a finite loss. NaN in a valid voxel gives NaN;
    * ``ignore_index`` may be a class id: the voxels of that class are dropped, but its logit still competes in the maximum,
      and it keeps its false-positive terms in the other voxels;
    * ``include_background=False`` leaves out both terms of class 0; its logit still competes;
    * float16, bfloat16 and float32 logits give a float32 loss, float64 logits a float64 loss.

    The buffers ``margin_negative``, ``margin_positive``, ``negative_weight``, ``positive_weight`` may be changed between steps,
    for example by a handler, in place or by assignment. They are saved in ``state_dict``, and stay float32 under
    ``.half()`` and ``.bfloat16()``. ``.double()`` gives the margins as they were computed, in float64.

    Shapes:
        * input: logits (B, N, *spatial), any number of spatial dimensions, N = C classes, or N = 1: the logit of class 1
          against class 0 at 0 (then C = 2). No softmax before it.
        * target: class indices (B, 1, *spatial) or (B, *spatial) of any integer or integral floating dtype, or one-hot /
          soft labels (B, N, *spatial) in [0, 1] that add up to 1; for N = 1 also a floating probability of class 1. A soft
          label y_k weighs the false-negative term of class k, 1 - y_k its false-positive term.
        * output: scalar, or (B, 1, *spatial) for ``reduction="none"``, 0 in ignored voxels.

    Source: Li, Yu, Zhang, "Distribution-aware Margin Calibration for Medical Image Segmentation" (arXiv:2011.01462),
    "A practical implementation"; extended: IJCV 130(1):95-110, 2022 (arXiv:2112.11554). The weight 1/C of the false-positive
    terms is in the authors' released code, not in print; ``negative_weight=1.0`` gives the printed equation, whose gradient
    raises a wrong top class near a tie once there are 5 classes or more.

    Example:
        >>> loss = MarginCalibrationLoss(to_onehot_y=True, class_counts={0: 980, 1: 20})
        >>> logits = torch.tensor([[[2.0, -1.0, 0.5], [-2.0, 1.0, 0.0]]], requires_grad=True)  # (B, N, voxels)
        >>> labels = torch.tensor([[[0, 1, 1]]])  # (B, 1, voxels)
        >>> value = loss(logits, labels)
        >>> print(f"{value:.4f}")
        0.5650
        >>> value.backward()
        >>> bool((logits.grad.sum(dim=1).abs() < 1e-6).all())  # shifting all logits of a voxel changes nothing
        True
    """

    def __init__(
        self,
        include_background: bool = True,
        to_onehot_y: bool = False,
        class_counts: ClassCounts | Sequence[int] | Mapping[int, int] | str | os.PathLike[str] | None = None,
        margins: ClassMargins | Sequence[Any] | float | None = None,
        tau: float = 1.0,
        upsilon: float = 1.0,
        normalization: Literal["sum", "counts"] = "sum",
        positive_weight: float | Sequence[float] | torch.Tensor = 1.0,
        negative_weight: float | Sequence[float] | torch.Tensor | Literal["mean"] = "mean",
        base: Literal[2, "e"] = "e",
        reduction: LossReduction | str = LossReduction.MEAN,
        ignore_index: int | None = None,
        global_mean: bool = False,
        backend: Literal["auto", "eager", "triton"] = "auto",
    ) -> None:
        """Set up the margins; nothing is looked up later.

        Args:
            include_background: if False, the terms of class 0 are left out; its logit still competes. Counts, margins and
                weights have one entry per class all the same, the background among them.
            to_onehot_y: the target must hold class indices. With False every form is taken.
            class_counts: voxels per class of the training labels: `ClassCounts`, a sequence, a mapping id -> count, or the
                path of a counts JSON. Entry k belongs to channel k; ids with gaps must be mapped to 0 ... C - 1 in the target.
            margins: explicit margins instead: `ClassMargins`, a pair (rho_0k, rho_k0) of one value per class each, a pair
                of numbers for all classes alike, or one number for both; 0.0 is the loss without margins.
            tau: scale of the margins from counts.
            upsilon: ratio of positive to negative margins from counts.
            normalization: "sum" or "counts", how margins from counts are scaled.
            positive_weight: weight of the false-negative terms: a number, or one per class.
            negative_weight: weight of the false-positive terms: "mean" = 1/C, a number, or one per class.
            base: of the logarithm: "e" (the released code; the scale of cross-entropy) or 2 (the printed equation,
                phi_rho(l) = log2(1 + 2^(rho - l))). 2 asks for logits 1.44 times as large before it is satisfied with the
                background. Measured (docs/study): above 2 % of the voxels the two are level; below 1 % "e" was 1 to 23 points
                of foreground IoU better for this loss alone, 0 to 2 for its compounds. In base 2 the loss bounds the paper's
                rho-margin loss for every rho > 0, in base e for rho >= ln(e - 1) = 0.541, or for every rho once it is divided
                by ln 2 (docs/method.md).
            reduction: "mean" (over valid voxels), "sum", or "none".
            ignore_index: label of voxels that do not count.
            global_mean: with several processes, divide by the mean number of valid voxels per process instead of one's own, so
                that gradients averaged by DistributedDataParallel equal those of one process that sees all voxels. Every
                process must then call the loss equally often. Needs ``reduction="mean"``.
            backend: "triton" for the fused GPU kernels, "eager" for plain tensor operations, "auto" for the kernels
                wherever they can run, on a CPU for kernels that are compiled at their first use. The environment variable
                MARGINCAL_KERNEL (eager, triton, auto) says what "auto" is.

        Raises:
            ValueError: neither or both of ``class_counts`` and ``margins`` are given; margins or weights are negative, not
                finite or of different lengths; a setting of the margins from counts is given along with explicit ``margins``;
                unknown ``base``, ``normalization`` or ``reduction``; ``global_mean`` without "mean".
            TypeError: a weight or margin is not a number.
        """
        super().__init__(reduction=LossReduction(reduction).value)
        if base not in (2, "e"):
            raise ValueError(f"base must be 2 or 'e', found {base!r}")
        if global_mean and self.reduction != "mean":
            raise ValueError(f"global_mean=True needs reduction='mean', found reduction={self.reduction!r}")
        if backend not in ("auto", "eager", "triton"):
            raise ValueError(f"backend must be 'auto', 'eager' or 'triton', found {backend!r}")
        if isinstance(ignore_index, bool) or not isinstance(ignore_index, (int, type(None))):
            raise TypeError(f"ignore_index must be an integer or None, found {ignore_index!r}")
        self.include_background = include_background
        self.to_onehot_y = to_onehot_y
        self.base_e = base == "e"
        self.ignore_index = ignore_index
        self.global_mean = global_mean
        self.backend = backend
        negative, positive, self.ids, names = _resolve_margins(
            class_counts, margins, tau=tau, upsilon=upsilon, normalization=normalization
        )
        self.class_names = names
        #: where the margins come from, in words: they themselves no longer tell
        self.margins_from = (
            "given" if class_counts is None else f"tau {tau:g}, upsilon {upsilon:g}, normalization {normalization}"
        )
        given = {
            "margin_negative": negative,
            "margin_positive": positive,
            "negative_weight": [1.0]
            if isinstance(negative_weight, str)
            else _numbers(negative_weight, "negative_weight"),
            "positive_weight": _numbers(positive_weight, "positive_weight"),
        }
        num_classes = _common_length(given, include_background)
        #: without a known number of classes 1/C is applied to the one shared weight when the logits are seen
        self.negative_weight_is_mean = False
        if isinstance(negative_weight, str):
            if negative_weight != "mean":
                raise ValueError(f"negative_weight must be 'mean' or numbers, found {negative_weight!r}")
            given["negative_weight"] = [1.0 / num_classes]
            self.negative_weight_is_mean = num_classes == 1
        for name, values in given.items():
            self._hold(name, values * (num_classes // len(values)), torch.float32)
        self.margin_negative: torch.Tensor
        self.margin_positive: torch.Tensor
        self.negative_weight: torch.Tensor
        self.positive_weight: torch.Tensor
        self.classes_in_messages = _in_messages(self.ids, names)

    def forward(
        self, input: torch.Tensor, target: torch.Tensor, class_mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Compute the loss.

        Args:
            input: logits (B, N, *spatial).
            target: class indices (B, 1, *spatial) or (B, *spatial), or one-hot / soft labels (B, N, *spatial).
            class_mask: bool (B, C), False for a class that was not annotated in a case. There it has no terms and does not
                compete, and its logit's gradient is exactly 0. A case with fewer than two annotated classes has no margins:
                its voxels count as ignored.

        Returns:
            the loss, a plain tensor: float32, or float64 for float64 logits.

        Raises:
            ValueError: shapes do not fit each other or the number of classes; a label is undeclared or not a whole number (the
                message lists those found); one-hot channels overlap; a voxel is labelled with a class that its case does not
                annotate; a margin or weight was set to something negative or not finite (looked at on a CPU). The GPU
                kernels do not wait to tell a wrong label: the loss is NaN, and the error comes with the next call.
        """
        negative_weight = self.false_positive_weight(input)
        reduction = "sum" if self.global_mean else self.reduction
        if torch.jit.is_scripting():
            loss, valid = torch.ops.margincal.margin_calibration(
                input,
                target,
                self.margin_negative,
                self.margin_positive,
                negative_weight,
                self.positive_weight,
                class_mask,
                self.base_e,
                self.include_background,
                self.ignore_index,
                reduction,
                self.to_onehot_y,
                self.classes_in_messages,
                self.backend,
            )
        else:
            loss, valid = margin_calibration(
                input,
                target,
                self.margin_negative,
                self.margin_positive,
                negative_weight=negative_weight,
                positive_weight=self.positive_weight,
                class_mask=class_mask,
                base_e=self.base_e,
                include_background=self.include_background,
                ignore_index=self.ignore_index,
                reduction=reduction,
                only_indices=self.to_onehot_y,
                classes_in_messages=self.classes_in_messages,
                backend=self.backend,
            )
        return self.over_ranks(loss, valid)

    def false_positive_weight(self, input: torch.Tensor) -> torch.Tensor:
        """``negative_weight``, divided by the number of classes where it is their mean and only the logits tell how many."""
        negative_weight = self.negative_weight
        if self.negative_weight_is_mean and negative_weight.shape[0] == 1 and input.ndim > 1:
            negative_weight = negative_weight / max(input.shape[1], 2)
        return negative_weight

    def over_ranks(self, loss: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
        """The loss as it is, or with ``global_mean`` a sum over ``valid`` voxels by the mean number of them per process."""
        if self.global_mean:
            voxels = torch.ops.margincal.mean_over_ranks(valid).to(loss.dtype)
            loss = loss / torch.where(voxels > 0, voxels, torch.ones_like(voxels))
        return loss

    def extra_repr(self) -> str:
        """Margins, weights and the settings that are not at their defaults."""
        parts = [f"classes=[{', '.join(self.class_names)}]"] if self.class_names else []
        if self.ids is not None and self.ids != tuple(range(len(self.ids))):
            parts.append(f"ids={list(self.ids)}")
        parts += [f"{name}={_short(self._buffers[name])}" for name in _PER_CLASS]
        if self.negative_weight_is_mean:
            parts[-2] = "negative_weight='mean'"
        parts += [f"base={'e' if self.base_e else 2}", f"reduction={self.reduction!r}"]
        parts += [] if self.include_background else ["include_background=False"]
        parts += ["to_onehot_y=True"] if self.to_onehot_y else []
        parts += [] if self.ignore_index is None else [f"ignore_index={self.ignore_index}"]
        parts += ["global_mean=True"] if self.global_mean else []
        parts += [] if self.backend == "auto" else [f"backend={self.backend!r}"]
        return ", ".join(parts)


def _resolve_margins(
    class_counts: Any, margins: Any, *, tau: float, upsilon: float, normalization: Literal["sum", "counts"]
) -> tuple[list[float], list[float], tuple[int, ...] | None, tuple[str, ...] | None]:
    """rho_0k and rho_k0 with the ids and names of their classes."""
    if (class_counts is None) == (margins is None):
        found = "neither" if margins is None else "both"
        raise ValueError(
            f"found {found} of class_counts and margins: expected one. Count the training labels with "
            "monai_margincal.count_labels(...) or `python -m monai_margincal count PATHS --num-classes C --output counts.json` "
            "and give class_counts, or give margins=(rho_0k, rho_k0) (0.0 for the loss without margins)"
        )
    if class_counts is not None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            margins = class_margins(class_counts, tau, upsilon, normalization)
        for warning in caught:  # about an absent class: point at whoever makes the loss
            warnings.warn(warning.message, warning.category, stacklevel=3)
    elif (tau, upsilon, normalization) != (1.0, 1.0, "sum"):
        raise ValueError(
            f"tau={tau!r}, upsilon={upsilon!r}, normalization={normalization!r} make margins from class_counts: expected their "
            "defaults along with explicit margins"
        )
    if not isinstance(margins, ClassMargins):
        pair = (margins, margins) if _is_number(margins) else margins
        if isinstance(pair, (str, Mapping)) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise ValueError(f"margins must be ClassMargins, a pair (rho_0k, rho_k0) or a number, found {margins!r}")
        negative, positive = (_numbers(side, "margins") for side in pair)
        if len(negative) == len(positive) == 1:
            return negative, positive, None, None
        longest = max(len(negative), len(positive))
        negative, positive = (side * longest if len(side) == 1 else side for side in (negative, positive))
        margins = ClassMargins(negative, positive)
    return margins.negative.tolist(), margins.positive.tolist(), margins.ids, margins.names


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) or (isinstance(value, torch.Tensor) and value.ndim == 0)


def _numbers(value: Any, what: str) -> list[float]:
    """Numbers >= 0 from a number, a sequence, an array or a tensor."""
    values = value.tolist() if hasattr(value, "tolist") else value
    values = [values] if _is_number(values) else values
    if isinstance(values, str) or not isinstance(values, Sequence) or not all(_is_number(one) for one in values):
        raise TypeError(f"{what} must be a number or one number per class, found {value!r}")
    wrong = [one for one in values if not (0 <= float(one) < math.inf)]
    if wrong or not values:
        raise ValueError(f"{what} must be finite and >= 0, found {value!r}")
    return [float(one) for one in values]


def _common_length(given: Mapping[str, list[float]], include_background: bool) -> int:
    """Number of classes that all per-class values agree on; 1 where every one holds for all classes alike."""
    lengths = {name: len(values) for name, values in given.items() if len(values) > 1}
    if len(set(lengths.values())) > 1:
        flag = "" if include_background else ", the background among them although include_background=False"
        raise ValueError(f"found {lengths} values per class: expected one entry per class in each{flag}")
    return max(lengths.values(), default=1)


def _in_messages(ids: tuple[int, ...] | None, names: tuple[str, ...] | None) -> str:
    """What belongs to the channels, for messages about labels: empty, names, or the ids that a target has to be mapped from."""
    gaps = ids is not None and ids != tuple(range(len(ids)))
    if not names and not gaps:
        return ""
    labels = []
    for channel in range(len(names or ids or ())):
        label = str(channel)
        if ids is not None and gaps:
            label += f" for id {ids[channel]}"
        labels.append(label + (f" {names[channel]}" if names else ""))
    return ", ".join(labels)


def _short(values: torch.Tensor | None) -> str:
    if values is None or values.device.type == "meta":
        return "..."
    numbers = [f"{value:.4g}" for value in values.tolist()]
    if len(numbers) > 1 and len(set(numbers)) == 1:
        return f"{numbers[0]} (each of {len(numbers)} classes)"
    return numbers[0] if len(numbers) == 1 else f"[{', '.join(numbers)}]"
