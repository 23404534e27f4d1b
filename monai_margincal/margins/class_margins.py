"""Margin-offsets per class from the label counts of the training set (Corollary 1.1)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from ..counting.as_class_counts import as_class_counts

__all__ = ["ClassMargins", "class_margins"]


@dataclass(frozen=True, eq=False)
class ClassMargins:
    """Two margin-offsets per class: how far beyond a tie a voxel's logits have to go.

    Args:
        negative: rho_0k, asked of the voxels that are *not* class k: finite numbers >= 0, shape (C,).
        positive: rho_k0, asked of the voxels that are class k: finite numbers >= 0, shape (C,).
        ids: label ids, distinct integers (C,), or None.
        names: class names (C,), or None.

    Both are kept as float64 tensors on the CPU. They are differences of logits: in natural units for a loss of base e, the
    default; for a loss of base 2 a margin of 1 is a factor of 2 in the odds.

    Raises:
        ValueError: a margin is negative, NaN or infinite (the released code then takes the true class for a wrong one), the
            shapes differ, or there are fewer than two classes.

    Example:
        >>> ClassMargins(negative=[0.0, 1.0], positive=[0.5, 0.0], names=["background", "lesion"])
        ClassMargins(background: negative 0, positive 0.5; lesion: negative 1, positive 0)
    """

    negative: torch.Tensor
    positive: torch.Tensor
    ids: tuple[int, ...] | None = None
    names: tuple[str, ...] | None = None

    def __init__(
        self,
        negative: Sequence[float] | torch.Tensor,
        positive: Sequence[float] | torch.Tensor,
        ids: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        tensors = {}
        for what, values in (("negative", negative), ("positive", positive)):
            tensor = torch.as_tensor(values, dtype=torch.float64, device="cpu").detach().clone()
            if tensor.ndim != 1 or len(tensor) < 2:
                raise ValueError(
                    f"{what} has the shape {tuple(tensor.shape)}: expected (C,) with one margin for each of C >= 2 classes"
                )
            if not bool(torch.isfinite(tensor).all()) or bool((tensor < 0).any()):
                raise ValueError(f"{what} margins must be finite and >= 0, found {tensor.tolist()}")
            tensors[what] = tensor
        if len(tensors["negative"]) != len(tensors["positive"]):
            raise ValueError(
                f"found {len(tensors['negative'])} negative and {len(tensors['positive'])} positive margins: expected as many"
            )
        for what, labels in (("ids", ids), ("names", names)):
            if labels is not None and len(labels) != len(tensors["negative"]):
                raise ValueError(
                    f"{what} has {len(labels)} entries, but there are {len(tensors['negative'])} margins: expected as many"
                )
        # the class is frozen: this sets a field all the same
        object.__setattr__(self, "negative", tensors["negative"])
        object.__setattr__(self, "positive", tensors["positive"])
        object.__setattr__(self, "ids", None if ids is None else tuple(ids))
        object.__setattr__(self, "names", None if names is None else tuple(names))

    def __len__(self) -> int:
        return len(self.negative)

    @property
    def labels(self) -> tuple[str, ...]:
        """What messages call the classes: their names, else their ids, else their positions."""
        return self.names or tuple(str(i) for i in (self.ids or range(len(self))))

    def to_dict(self) -> dict[str, Any]:
        """JSON types; the value of ``"margins"`` can be pasted into a bundle as the argument ``margins`` of the loss."""
        return {
            "ids": None if self.ids is None else list(self.ids),
            "names": None if self.names is None else list(self.names),
            "margins": [self.negative.tolist(), self.positive.tolist()],
        }

    def __repr__(self) -> str:
        rows = zip(self.labels, self.negative.tolist(), self.positive.tolist(), strict=True)
        return f"ClassMargins({'; '.join(f'{label}: negative {n:.6g}, positive {p:.6g}' for label, n, p in rows)})"


def class_margins(
    counts: Any, tau: float = 1.0, upsilon: float = 1.0, normalization: Literal["sum", "counts"] = "sum"
) -> ClassMargins:
    """Margin-offsets that minimise the generalization bound for the given class counts.

    With n_k voxels of class k, n = sum n_k, p_k = n_k / n and r_k = sqrt(n - n_k) / n_k::

        rho_0k = tau r_k / sum_j r_j       normalization="sum"
        rho_0k = tau r_k                   normalization="counts"
        mu_k   = p_k sqrt(n_k) / (upsilon (n - n_k) - p_k sqrt(n - n_k))
        rho_k0 = mu_k rho_0k

    The corollary fixes only the proportions of rho_0k under a constant sum, hence the default. ``"counts"`` is what the authors'
    released code does: its margins shrink with n^(-1/2): they vanish on large data and are a hazard on small data.

    An absent class (count 0) gets margins of 0 and no share of tau, and one warning names it.

    Args:
        counts: anything that `monai_margincal.counting.as_class_counts` takes: `ClassCounts`, counts per class (C,), a mapping
            id -> count, a path.
        tau: scale of the margins, >= 0, in units of the logits: the sum of all rho_0k under "sum". 0 gives margins of 0.
        upsilon: sets the ratio rho_k0 / rho_0k; greater than p_k / sqrt(n - n_k) of every present class. The larger, the
            smaller rho_k0.
        normalization: "sum" or "counts".

    Returns:
        margins with the ids and names of the counts, computed in float64.

    Raises:
        ValueError: fewer than two classes, nothing counted, one class fills everything, upsilon or tau outside its range,
            unknown normalization.

    Source: arXiv:2011.01462, Corollary 1.1 and "A practical implementation".

    Example:
        >>> class_margins([980, 20], tau=1.0)
        ClassMargins(0: negative 0.00290698, positive 0.00571051; 1: negative 0.997093, positive 9.10609e-05)
    """
    found = as_class_counts(counts)
    if len(found) < 2:
        raise ValueError(f"margins need at least 2 classes, found {len(found)}: {found!r}")
    for what, value in (("tau", tau), ("upsilon", upsilon)):
        if not math.isfinite(value) or value < 0:
            raise ValueError(f"{what} must be finite and >= 0, found {value!r}")
    if normalization not in ("sum", "counts"):
        raise ValueError(f"normalization must be 'sum' or 'counts', found {normalization!r}")
    voxels = [int(count) for count in found.counts]
    total = found.total
    if total == 0:
        raise ValueError(f"nothing was counted, so there are no margins: {found!r}")
    full = [label for label, count in zip(found.labels, voxels, strict=True) if count == total]
    if full:
        raise ValueError(
            f"class {full[0]!r} fills everything ({total} voxels): margins need voxels of at least two classes"
        )
    absent = [label for label, count in zip(found.labels, voxels, strict=True) if count == 0]
    if absent:
        warnings.warn(
            f"no voxel of class {', '.join(map(repr, absent))} was counted: it gets the margin 0 and no share of tau. "
            "Check the label ids if the class should be there.",
            stacklevel=2,
        )
    _check_upsilon(upsilon, voxels, total, found.labels)

    ratios = [math.sqrt(total - count) / count if count else 0.0 for count in voxels]
    scale = tau / math.fsum(ratios) if normalization == "sum" else tau
    negative = [scale * ratio for ratio in ratios]
    positive = [_mu(count, total, upsilon) * rho if count else 0.0 for count, rho in zip(voxels, negative, strict=True)]
    return ClassMargins(negative, positive, found.ids, found.names)


def _mu(count: int, total: int, upsilon: float) -> float:
    """mu_k = rho_k0 / rho_0k of Corollary 1.1."""
    frequency, others = count / total, total - count
    return frequency * math.sqrt(count) / (upsilon * others - frequency * math.sqrt(others))


def _check_upsilon(upsilon: float, voxels: list[int], total: int, labels: Sequence[str]) -> None:
    """Below the limit of upsilon mu_k is negative, at the limit infinite; both turn the loss against the true class."""
    limits = {
        label: count / total / math.sqrt(total - count) for label, count in zip(labels, voxels, strict=True) if count
    }
    worst = max(limits, key=limits.__getitem__)
    # the denominator itself is checked, so that the check agrees with the division that follows
    for count in filter(None, voxels):
        others = total - count
        if not upsilon * others - count / total * math.sqrt(others) > 0:
            raise ValueError(
                f"upsilon must be greater than {limits[worst]:.6g} for these counts (p_k / sqrt(n - n_k) of class {worst!r}), "
                f"found {upsilon!r}: rho_k0 would be negative or infinite"
            )
