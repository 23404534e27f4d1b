"""Refuse an image and a label that do not lie on the same grid, before anything crops or turns them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from monai.config import KeysCollection
from monai.data import MetaTensor
from monai.transforms import MapTransform
from monai.utils import ImageMetaKey

from ..geometry import GRID_TOLERANCE, corner_shift


class CheckSameGridd(MapTransform):
    """Require that the items of ``keys`` have one spatial shape and one affine; pass them through unchanged.

    A label with one slice less, or with a different header, would otherwise be cropped and reoriented along with its image
    without complaint, and the network would learn from shifted or mirrored labels. Items are channel first, (C, X, Y[, Z]), of
    any dtype. Affines are compared by where they put the corners of the first item, and only between items that carry one
    (MetaTensors).

    Args:
        keys: keys of the items to compare with the first of them.
        tolerance: how far a corner may move, in voxels (of the shortest edge); the default, a quarter, is also that of
            `monai_margincal.statistics.find_problems` and `check-bundle`. None compares the shapes only, for data whose
            label headers are known to be wrong.
        allow_missing_keys: skip a key that is absent.

    Raises:
        ValueError: ``tolerance`` is negative; on call: the shapes differ, or a corner moves by more than ``tolerance``.

    Example:
        >>> import torch
        >>> from monai_margincal.transforms import CheckSameGridd
        >>> check = CheckSameGridd(keys=["image", "label"])
        >>> check({"image": torch.zeros(1, 4, 4, 3), "label": torch.zeros(1, 4, 4, 2)})
        Traceback (most recent call last):
        ValueError: image and label lie on different grids: image (in memory) has shape (4, 4, 3), label (in memory) has ...
    """

    def __init__(
        self, keys: KeysCollection, tolerance: float | None = GRID_TOLERANCE, allow_missing_keys: bool = False
    ) -> None:
        super().__init__(keys, allow_missing_keys)
        if tolerance is not None and not tolerance >= 0:
            raise ValueError(f"tolerance must not be negative, found {tolerance}")
        self.tolerance = tolerance

    def __call__(self, data: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        """Check ``data`` and return a shallow copy of it."""
        items = dict(data)
        present = list(self.key_iterator(items))
        for key in present[1:]:
            self._compare(present[0], items[present[0]], key, items[key])
        return items

    def _compare(self, first_key: Hashable, first: Any, key: Hashable, other: Any) -> None:
        shape, other_shape = tuple(first.shape[1:]), tuple(other.shape[1:])
        problem = f"{first_key} and {key} lie on different grids: {first_key} ({_file(first)}) has"
        if shape != other_shape:
            raise ValueError(f"{problem} shape {shape}, {key} ({_file(other)}) has shape {other_shape}")
        if self.tolerance is None or not isinstance(first, MetaTensor) or not isinstance(other, MetaTensor):
            return
        affine, other_affine = _affine(first), _affine(other)
        shift = corner_shift(affine, other_affine, shape)
        if not shift.voxels <= self.tolerance:
            raise ValueError(
                f"{problem} the affine {affine.round(4).tolist()}, {key} ({_file(other)}) has {other_affine.round(4).tolist()}: "
                f"a corner moves by {shift.mm:.4g} mm or {shift.voxels:.4g} voxels, allowed are {self.tolerance:g}"
            )


def _affine(item: MetaTensor) -> np.ndarray:
    return np.asarray(item.affine.cpu(), dtype=np.float64)


def _file(item: Any) -> str:
    name = item.meta.get(ImageMetaKey.FILENAME_OR_OBJ) if isinstance(item, MetaTensor) else None
    return str(name) if name else "in memory"


CheckSameGridD = CheckSameGridDict = CheckSameGridd
