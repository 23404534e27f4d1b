"""Class weights from class counts, ready for the ``weight=`` arguments of MONAI's losses.

Every project computes these anew, several of them wrongly; here each has its formula, its source and its behaviour for a class
without voxels in one place. All are float32 tensors (C,) in the order of the ids, background included, so that
``DiceCELoss(weight=...)``, ``FocalLoss(weight=...)`` and ``torch.nn.CrossEntropyLoss(weight=...)`` take them as they are.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ..counting.as_class_counts import as_class_counts
from ..counting.class_counts import ClassCounts

if TYPE_CHECKING:
    import torch

_NORMALIZATIONS = ("none", "mean", "sum")


def inverse_frequency_weights(class_counts: Any, normalization: str = "mean") -> torch.Tensor:
    """Weights in inverse proportion to the frequency of the classes.

    ``w_k = n / (C n_k)`` before normalisation, where n is the voxels of all classes, n_k those of class k and C the number of
    classes that have voxels (King and Zeng, "Logistic Regression in Rare Events Data", Political Analysis 9(2), 2001; the
    "balanced" weights of scikit-learn). A class without voxels gets weight 0, with one warning that names it.

    Args:
        class_counts: a `ClassCounts` or anything that can be turned into one: counts per class, a mapping, a JSON path.
        normalization: ``"none"``; ``"mean"``: the weights of the classes that have voxels average 1; ``"sum"``: they add up to 1.

    Returns:
        (C,) float32.

    Raises:
        ValueError: no class has voxels, or ``normalization`` is unknown.

    Example:
        >>> inverse_frequency_weights([90, 10], normalization="none")
        tensor([0.5556, 5.0000])
    """
    counts, present = _present(class_counts)
    frequencies = counts / counts.sum()
    raw = np.divide(1.0, present.sum() * frequencies, out=np.zeros_like(frequencies), where=present)
    return _normalized(raw, present, normalization)


def median_frequency_weights(class_counts: Any, normalization: str = "none") -> torch.Tensor:
    """Median frequency balancing: the median of the class frequencies over the frequency of the class.

    ``w_k = median_j(f_j) / f_k`` with ``f_k`` = voxels of class k over all voxels *of the cases in which it occurs* (Eigen and
    Fergus, "Predicting Depth, Surface Normals and Semantic Labels with a Common Multi-Scale Convolutional Architecture", ICCV
    2015). That needs the counts of the individual cases; with ``ClassCounts`` that have none, all voxels count as one case. The
    median is taken over classes that have voxels; one without gets weight 0, with one warning that names it.

    Args:
        class_counts: see `inverse_frequency_weights`.
        normalization: see `inverse_frequency_weights`.

    Returns:
        (C,) float32.

    Raises:
        ValueError: see `inverse_frequency_weights`.

    Example:
        >>> cases = {"a": [80, 20, 0], "b": [90, 0, 10]}
        >>> median_frequency_weights(ClassCounts([170, 20, 10], cases=cases))
        tensor([0.2353, 1.0000, 2.0000])
    """
    parsed = as_class_counts(class_counts)
    counts, present = _present(parsed)
    cases = list(parsed.cases.values()) if parsed.cases else [tuple(parsed.counts.tolist())]
    per_case = np.array(cases, dtype=np.float64)
    voxels_where_it_occurs = (per_case.sum(axis=1, keepdims=True) * (per_case > 0)).sum(axis=0)
    frequencies = np.divide(counts, voxels_where_it_occurs, out=np.zeros_like(counts), where=present)
    median = np.median(frequencies[present])
    raw = np.divide(median, frequencies, out=np.zeros_like(frequencies), where=present)
    return _normalized(raw, present, normalization)


def effective_number_weights(class_counts: Any, beta: float = 0.999, normalization: str = "mean") -> torch.Tensor:
    """Weights in inverse proportion to the effective number of samples.

    ``w_k = (1 - beta) / (1 - beta^n_k)`` (Cui, Jia, Lin, Song and Belongie, "Class-Balanced Loss Based on Effective Number of
    Samples", CVPR 2019, Proposition 1). ``beta = 0`` weights all classes alike, ``beta -> 1`` approaches inverse frequency. With
    voxel counts in the millions, every class beyond a few times ``1 / (1 - beta)`` voxels counts as equally large: choose
    ``1 - beta`` near the inverse of the voxels of a typical structure. A class without voxels gets weight 0, with one
    warning that names it.

    Args:
        class_counts: see `inverse_frequency_weights`.
        beta: in [0, 1).
        normalization: see `inverse_frequency_weights`; the paper's own is ``"mean"``.

    Returns:
        (C,) float32.

    Raises:
        ValueError: ``beta`` is outside [0, 1); see also `inverse_frequency_weights`.

    Example:
        >>> effective_number_weights([1000, 10], beta=0.99, normalization="none")
        tensor([0.0100, 0.1046])
    """
    if not 0.0 <= beta < 1.0:
        raise ValueError(f"beta is {beta}: expected 0 <= beta < 1")
    counts, present = _present(class_counts)
    # 1 - beta^n without cancellation for beta near 1 and few voxels
    effective = -np.expm1(counts * np.log1p(beta - 1.0)) if beta > 0.0 else present.astype(np.float64)
    raw = np.divide(1.0 - beta, effective, out=np.zeros_like(counts), where=present)
    return _normalized(raw, present, normalization)


def _present(class_counts: Any) -> tuple[np.ndarray, np.ndarray]:
    """Counts as float64 and which classes have voxels; warns about those that have none."""
    parsed: ClassCounts = as_class_counts(class_counts)
    counts = parsed.counts.astype(np.float64)
    present = counts > 0
    if not present.any():
        raise ValueError(f"class_counts has no voxel of any class {list(parsed.labels)}, expected at least one")
    if not present.all():
        absent = [label for label, has in zip(parsed.labels, present, strict=True) if not has]
        warnings.warn(f"no voxel of the class(es) {', '.join(absent)} was counted: weight 0", stacklevel=3)
    return counts, present


def _normalized(raw: np.ndarray, present: np.ndarray, normalization: str) -> torch.Tensor:
    # imported with this room, torch would cost the counting of files more time and memory than the counting itself
    import torch

    if normalization not in _NORMALIZATIONS:
        raise ValueError(f"normalization is {normalization!r}, expected one of {_NORMALIZATIONS}")
    if normalization == "mean":
        raw = raw / raw[present].mean()
    elif normalization == "sum":
        raw = raw / raw.sum()
    return torch.from_numpy(raw).to(torch.float32)
