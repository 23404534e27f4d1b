"""The decision as a step of a MONAI chain, in place of ``AsDiscrete(argmax=True)``."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import torch
from monai.config import KeysCollection
from monai.data import MetaTensor
from monai.transforms import MapTransform, Transform
from monai.utils import TransformBackends

from ..ops import class_dtype, largest_class
from .class_offsets import ClassOffsets

#: what an argument ``offsets`` may be
Offsets = ClassOffsets | Sequence[float] | str | os.PathLike[str] | None


def as_class_offsets(offsets: Offsets) -> ClassOffsets | None:
    """Offsets from any form in which an argument may come: as they are, one number per class, the path of a JSON file, None.

    Example:
        >>> as_class_offsets([0, 0.5])
        ClassOffsets(0: +0, 1: +0.5)
    """
    if offsets is None or isinstance(offsets, ClassOffsets):
        return offsets
    if isinstance(offsets, (str, os.PathLike)):
        return ClassOffsets.from_json(offsets)
    return ClassOffsets(offsets)


def decided_classes(logits: torch.Tensor, offsets: ClassOffsets | None = None, dim: int = 1) -> torch.Tensor:
    """The class of every voxel by the largest sum of logit and offset, or by the largest logit.

    Args:
        logits: C values along ``dim``, or one: the logit of class 1 against 0 (what a sigmoid gets), decided at 0.
        offsets: None takes the largest logit.
        dim: the dimension of the classes, which becomes 1.

    Returns:
        uint8 indices; int32 above 256 classes. Of equal sums the first class.

    Raises:
        ValueError: the offsets are of another number of classes.

    Example:
        >>> logit = torch.tensor([[[-0.5, 0.0, 0.5]]])
        >>> decided_classes(logit).tolist(), decided_classes(logit, ClassOffsets([0, 1])).tolist()
        ([[[0, 0, 1]]], [[[1, 1, 1]]])
    """
    found = logits.shape[dim]
    if offsets is not None:
        decided = offsets(logits, dim)
    elif found == 1:
        decided = logits.squeeze(dim) > 0
    else:
        decided = largest_class(logits, dim)
    return decided.to(class_dtype(found)).unsqueeze(dim)


class DecideClass(Transform):
    """Turn logits, channel first, into class indices of one byte per voxel.

    Args:
        offsets: `ClassOffsets`, one number per class, or the path of their JSON file; None takes the largest logit.

    Example:
        >>> DecideClass(offsets=[0.0, 1.5])(torch.tensor([[1.0, 1.0, 1.0], [2.0, 0.0, -1.0]]))
        tensor([[1, 1, 0]], dtype=torch.uint8)
    """

    backend = [TransformBackends.TORCH]  # noqa: RUF012 - as MONAI declares it

    def __init__(self, offsets: Offsets = None) -> None:
        self.offsets = as_class_offsets(offsets)

    def __call__(self, logits: torch.Tensor) -> torch.Tensor:
        """Decide one case.

        Args:
            logits: (C, ...), or (1, ...) for two classes: the logit of class 1 against 0; a MetaTensor keeps its metadata.

        Returns:
            (1, ...) uint8; int32 above 256 classes.

        Raises:
            ValueError: the offsets are of another number of classes.
        """
        plain = logits.as_tensor() if isinstance(logits, MetaTensor) else logits
        decided = decided_classes(plain, self.offsets, dim=0)
        return MetaTensor(decided).copy_meta_from(logits) if isinstance(logits, MetaTensor) else decided


class DecideClassd(MapTransform):
    """`DecideClass` for the items of ``keys``.

    Args:
        keys: keys of the logits, (C, ...), which are replaced by their decisions, (1, ...).
        offsets: see `DecideClass`.
        allow_missing_keys: skip a key that is absent.

    Example:
        >>> decide = DecideClassd("pred", offsets=[0.0, 1.5])
        >>> decide({"pred": torch.tensor([[1.0, 1.0], [0.0, -1.0]])})["pred"]
        tensor([[1, 0]], dtype=torch.uint8)
    """

    backend = DecideClass.backend

    def __init__(self, keys: KeysCollection, offsets: Offsets = None, allow_missing_keys: bool = False) -> None:
        super().__init__(keys, allow_missing_keys)
        self.decide = DecideClass(offsets)

    def __call__(self, data: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        """Return a shallow copy of ``data`` with the decisions in it."""
        items = dict(data)
        for key in self.key_iterator(items):
            items[key] = self.decide(items[key])
        return items


DecideClassD = DecideClassDict = DecideClassd
