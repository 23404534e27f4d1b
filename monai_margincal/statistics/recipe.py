"""Which loss and which decision fit the rarest class: the rule of docs/objectives.md, written once.

`RECIPES` is the table, `recipe_for` the rule. The report and ``margincal margins`` offer what they say, and the guide's table
repeats it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..counting.class_counts import ClassCounts

__all__ = ["DECISION", "RECIPES", "Recipe", "rarest_class", "recipe_for"]

#: how every recipe decides: a fit keeps argmax where the gain is not clear of chance, so this is never worse on paper only
DECISION = "one offset per class, fitted on the validation cases"


@dataclass(frozen=True)
class Recipe:
    """A loss for a range of shares.

    Attributes:
        case: the range in words.
        below: the share that is just too large, a fraction of 1.
        loss: dotted name of the loss.
        arguments: its arguments, in JSON types, without the class counts.
        takes_counts: it also wants ``class_counts``.
        reason: what was measured, one sentence.
    """

    case: str
    below: float
    loss: str
    arguments: Mapping[str, Any]
    takes_counts: bool
    reason: str

    @property
    def call(self) -> str:
        """The loss as it is written in Python, ``...`` for the counts.

        Example:
            >>> RECIPES[0].call
            'MarginCalibrationTverskyLoss(class_counts=..., base="e", batch=True)'
        """
        counts = ["class_counts=..."] if self.takes_counts else []
        given = [
            f'{name}="{value}"' if isinstance(value, str) else f"{name}={value}"
            for name, value in self.arguments.items()
        ]
        return f"{self.loss.rpartition('.')[2]}({', '.join(counts + given)})"


_MARGINS = "monai_margincal.MarginCalibrationTverskyLoss"
#: over the batch, because a patch often lacks the class
_MARGINS_ARGUMENTS = {"base": "e", "batch": True}

#: by rising share; the last one has no limit
RECIPES = (
    Recipe(
        "below 1 %",
        0.01,
        _MARGINS,
        _MARGINS_ARGUMENTS,
        takes_counts=True,
        reason="8 to 17 points of foreground mIoU ahead of cross-entropy in three tasks made rarer, 3 to 4 in two that are rare "
        "by nature",
    ),
    Recipe(
        "1 to 5 %",
        0.05,
        _MARGINS,
        _MARGINS_ARGUMENTS,
        takes_counts=True,
        reason="from 0.7 points of foreground mIoU behind cross-entropy to 1.6 ahead, in five tasks of 2.6 to 4.4 %",
    ),
    Recipe(
        "5 % and more",
        math.inf,
        "monai.losses.DiceCELoss",
        {"to_onehot_y": True, "softmax": True, "include_background": False, "batch": True, "lambda_dice": 0.0},
        takes_counts=False,
        reason="not measured here; where recall stays below precision on the validation cases, add Dice with lambda_dice=1.0",
    ),
)


def recipe_for(share: float) -> Recipe:
    """The recipe for the share of the rarest class.

    Args:
        share: voxels of that class over all voxels, in (0, 1].

    Raises:
        ValueError: the share is outside its range.

    Example:
        >>> [recipe_for(share).case for share in (0.004, 0.01, 0.0499, 0.05, 0.3)]
        ['below 1 %', '1 to 5 %', '1 to 5 %', '5 % and more', '5 % and more']
    """
    if not 0 < share <= 1:
        raise ValueError(f"share: found {share!r}, expected a number in (0, 1]")
    return next(recipe for recipe in RECIPES if share < recipe.below)


def rarest_class(counts: ClassCounts) -> tuple[str, float]:
    """The rarest class of the foreground and its share of all voxels; classes without a voxel are left out.

    The first class is the background: what is asked for is how much is lost if a structure is missed.

    Raises:
        ValueError: no class but the first has a voxel.

    Example:
        >>> rarest_class(ClassCounts([970, 0, 25, 5], names=["background", "none", "organ", "lesion"]))
        ('3 lesion', 0.005)
    """
    shares = zip(counts.labels[1:], counts.frequencies[1:].tolist(), strict=True)
    present = [(label, share) for label, share in shares if share > 0]
    if not present:
        raise ValueError(f"found no voxel of any class but the first, expected some: {counts!r}")
    return min(present, key=lambda one: one[1])
