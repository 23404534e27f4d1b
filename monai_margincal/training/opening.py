"""What a training says before its first epoch: the data that the loss was made for, its margins, the loss, the decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import nn

from ..counting.text_table import format_table
from ..losses import MarginCalibrationLoss
from ..pages.numbers import PER_MILLION_BELOW, per_million
from .warm_up import WarmUpLoss

if TYPE_CHECKING:
    from ..counting.class_counts import ClassCounts

__all__ = ["opening_text"]


def opening_text(loss: object, counts: ClassCounts | None, decision: str) -> str:
    """A table of the classes, a line about the loss and one about the decision.

    Columns: class, voxels, share, in how many of the cases, the margin asked of the voxels that are not the class (rho_0k) and of
    those that are (rho_k0), as far as they are known: counts that were given as numbers have no cases, and a loss may have no
    margins.

    Args:
        loss: the training's loss; a `WarmUpLoss` is named with both of its losses.
        counts: voxels per class of the training labels.
        decision: how classes are decided, in words.

    Example:
        >>> from monai_margincal import ClassCounts, MarginCalibrationDiceLoss
        >>> counts = ClassCounts([980, 20], names=["background", "lesion"], cases={"a": [490, 10], "b": [490, 10]})
        >>> print(opening_text(MarginCalibrationDiceLoss(class_counts=counts), counts, "argmax"))
        class         voxels    share  cases  rho_0k (negative)  rho_k0 (positive)
        ------------  ------  -------  -----  -----------------  -----------------
        0 background     980  98.000%    2/2            0.00291            0.00571
        1 lesion          20   2.000%    2/2              0.997           9.11e-05
        loss: MarginCalibrationDiceLoss, base e, margins from tau 1, upsilon 1, normalization sum, 1 margin + 1 dice
        decision: argmax
    """
    margin = _margin_part(loss)
    lines = [] if counts is None else [_table(counts, margin)]
    return "\n".join([*lines, f"loss: {_loss_words(loss)}", f"decision: {decision}"])


def _table(counts: ClassCounts, margin: MarginCalibrationLoss | None) -> str:
    columns: dict[str, Sequence[str]] = {
        "class": counts.labels,
        "voxels": [f"{number:,}" for number in counts.counts.tolist()],
        "share": [_share_in_words(share) for share in counts.frequencies.tolist()],
    }
    if counts.cases:
        cases = list(counts.cases.values())
        columns["cases"] = [
            f"{sum(number > 0 for number in column)}/{len(cases)}" for column in zip(*cases, strict=True)
        ]
    if margin is not None and len(margin.margin_negative) == len(counts):
        columns["rho_0k (negative)"] = [f"{rho:.3g}" for rho in margin.margin_negative.tolist()]
        columns["rho_k0 (positive)"] = [f"{rho:.3g}" for rho in margin.margin_positive.tolist()]
    return format_table(list(columns), list(zip(*columns.values(), strict=True)))


def _share_in_words(share: float) -> str:
    return f"{per_million(share)} per million" if 0 < share < PER_MILLION_BELOW else f"{share:.3%}"


def _loss_words(loss: object) -> str:
    if isinstance(loss, WarmUpLoss):
        words = _loss_words(loss.then)
        return f"{_loss_words(loss.first)} for {loss.epochs} epochs, then {words}" if loss.epochs else words
    margin = _margin_part(loss)
    weights = {name.removeprefix("lambda_"): value for name, value in vars(loss).items() if name.startswith("lambda_")}
    settings = [getattr(loss, "__name__", type(loss).__name__)]
    if margin is not None:
        settings += [f"base {'e' if margin.base_e else 2}", f"margins {_origin(margin.margins_from)}"]
    if weights:
        settings.append(" + ".join(f"{value:g} {name}" for name, value in weights.items()))
    return ", ".join(settings)


def _origin(words: str) -> str:
    return words if words == "given" else f"from {words}"


def _margin_part(loss: object) -> MarginCalibrationLoss | None:
    """The loss of margins within a loss, if there is one."""
    modules = loss.modules() if isinstance(loss, nn.Module) else ()
    return next((module for module in modules if isinstance(module, MarginCalibrationLoss)), None)
