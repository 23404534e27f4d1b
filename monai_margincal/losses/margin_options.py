"""The arguments of `MarginCalibrationLoss`, which the losses that contain one accept too."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from .margin_calibration import MarginCalibrationLoss

if TYPE_CHECKING:
    import torch
    from monai.utils import LossReduction

    from ..counting.class_counts import ClassCounts
    from ..margins import ClassMargins

__all__ = ["MarginOptions", "shows_margin_options"]

_Init = TypeVar("_Init", bound=Callable[..., None])


class MarginOptions(TypedDict, total=False):
    """The arguments of `MarginCalibrationLoss`; those not given keep that loss's defaults."""

    include_background: bool
    to_onehot_y: bool
    class_counts: ClassCounts | Sequence[int] | Mapping[int, int] | str | os.PathLike[str] | None
    margins: ClassMargins | Sequence[Any] | float | None
    tau: float
    upsilon: float
    normalization: Literal["sum", "counts"]
    positive_weight: float | Sequence[float] | torch.Tensor
    negative_weight: float | Sequence[float] | torch.Tensor | Literal["mean"]
    base: Literal[2, "e"]
    reduction: LossReduction | str
    ignore_index: int | None
    global_mean: bool
    backend: Literal["auto", "eager", "triton"]


def shows_margin_options(init: _Init) -> _Init:
    """Spell out the ``**margin`` of an ``__init__`` in its signature, with the defaults of `MarginCalibrationLoss`.

    `inspect.signature`, ``help`` and the check of a bundle's configs read names and defaults there; type checkers and editors
    read `MarginOptions`. The function itself stays as it is.

    Args:
        init: an ``__init__`` whose last parameter is ``**margin``.

    Returns:
        ``init``.

    Example:
        >>> @shows_margin_options
        ... def init(self, lambda_margin=1.0, **margin): ...
        >>> str(inspect.signature(init))[:62]
        "(self, lambda_margin=1.0, *, include_background: 'bool' = True"
    """
    *own, _ = inspect.signature(init).parameters.values()
    options = list(inspect.signature(MarginCalibrationLoss).parameters.values())
    positional = [one for one in own if one.kind is one.POSITIONAL_OR_KEYWORD]
    keywords = [one.replace(kind=one.KEYWORD_ONLY) for one in options] + own[len(positional) :]
    init.__signature__ = inspect.Signature([*positional, *keywords], return_annotation="None")  # type: ignore[attr-defined]
    return init
