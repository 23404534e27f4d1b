"""One offset per class, added to the logits before the largest is taken."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from monai.data import MetaTensor

from ..files import write_text
from ..json_files import expect_replaceable, read_json
from ..ops import largest_class

__all__ = ["ClassOffsets"]

_FORMAT = "monai_margincal.class_offsets"


class ClassOffsets:
    """Decide by the largest sum of logit and offset.

    A network that was trained for probabilities decides best for the IoU at other thresholds than 1/2: for two classes an offset
    b of class 1 is the threshold 1 / (1 + e^b) on its softmax probability. `fit_class_offsets` chooses the offsets on
    validation cases.

    Args:
        offsets: one number per class in natural units of the logits (C,), C of 2 or more; that of class 0 is 0.
        class_names: what the classes are called (C,), or None.
        fitted_on: what is known of the fit, in JSON types: cases, voxels, IoU before and after, cross-fitted gain, software.

    Raises:
        ValueError: fewer than two offsets, one that is not finite, one of class 0 that is not 0, or another number of names.

    Example:
        >>> offsets = ClassOffsets([0.0, 1.5], class_names=["background", "lesion"])
        >>> logits = torch.tensor([[[1.0, 1.0, 1.0], [2.0, 0.0, -1.0]]])  # (B, C, voxels)
        >>> offsets(logits)
        tensor([[1, 1, 0]])
    """

    def __init__(
        self,
        offsets: Sequence[float],
        class_names: Sequence[str] | None = None,
        fitted_on: Mapping[str, Any] | None = None,
    ) -> None:
        values = tuple(float(value) for value in offsets)
        if len(values) < 2:
            raise ValueError(f"offsets: found {list(values)}, expected one per class, of two or more classes")
        if not all(math.isfinite(value) for value in values) or values[0] != 0:
            raise ValueError(f"offsets: found {list(values)}, expected finite numbers, the first of them 0")
        if class_names is not None and len(class_names) != len(values):
            raise ValueError(f"class_names: found {list(class_names)}, expected {len(values)} names, one per offset")
        self.offsets = values
        self.class_names = None if class_names is None else tuple(class_names)
        self.fitted_on = None if fitted_on is None else dict(fitted_on)

    def __call__(self, logits: torch.Tensor, dim: int = 1) -> torch.Tensor:
        """The class of every voxel.

        Args:
            logits: floating point, C values along ``dim``, on any device; for two classes also one, the logit of class 1
                against 0 (what a sigmoid gets).
            dim: the dimension of the classes: 1 for a batch (B, C, ...), 0 for a case (C, ...).

        Returns:
            int64 indices without the dimension of the classes; of equal sums the first class.

        Raises:
            ValueError: another number of classes along ``dim``.
        """
        classes = len(self.offsets)
        if not -logits.ndim <= dim < logits.ndim:
            raise ValueError(
                f"found logits of shape {tuple(logits.shape)}, expected {classes} classes along dimension {dim}"
            )
        found = logits.shape[dim]
        plain = logits.as_tensor() if isinstance(logits, MetaTensor) else logits
        # half precision knows no step of 0.1 beside a logit of 100
        plain = plain.float() if plain.dtype in (torch.float16, torch.bfloat16) else plain
        if found == 1 and classes == 2:
            return (plain.squeeze(dim) + self.offsets[1] > 0).long()
        if found != classes:
            raise ValueError(
                f"found logits of shape {tuple(logits.shape)}, {found} along dimension {dim}, expected {classes} classes"
                + ("" if self.class_names is None else f" ({', '.join(self.class_names)})")
            )
        if not any(self.offsets):
            return largest_class(plain, dim)
        shape = [1] * logits.ndim
        shape[dim] = classes
        return largest_class(plain + plain.new_tensor(self.offsets).reshape(shape), dim)

    def __repr__(self) -> str:
        names = self.class_names or tuple(str(k) for k in range(len(self.offsets)))
        listed = ", ".join(f"{name}: {value:+.3g}" for name, value in zip(names, self.offsets, strict=True))
        return f"ClassOffsets({listed})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClassOffsets) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def to_dict(self) -> dict[str, Any]:
        """Everything in JSON types."""
        return {
            "format": _FORMAT,
            "version": 1,
            "offsets": list(self.offsets),
            "class_names": None if self.class_names is None else list(self.class_names),
            "fitted_on": self.fitted_on,
        }

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a JSON file, whole or not at all; an older file of offsets is replaced, any other file is not.

        Raises:
            FileExistsError: the file exists and holds something else.
        """
        self.expect_replaceable(path)
        write_text(path, json.dumps(self.to_dict(), indent=1) + "\n")

    @classmethod
    def expect_replaceable(cls, path: str | os.PathLike[str]) -> None:
        """Raise now, before there are offsets, what `to_json` would raise."""
        expect_replaceable(
            path, cls.from_json, ": found a file that holds no class offsets, expected none, or one to replace"
        )

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> ClassOffsets:
        """Read what `to_json` wrote.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it holds no class offsets; the message names it.
        """
        target = Path(path)
        content = read_json(target, "a JSON file of class offsets")
        if not isinstance(content, Mapping) or content.get("format") != _FORMAT or content.get("version") != 1:
            found = (
                {key: content.get(key) for key in ("format", "version")} if isinstance(content, Mapping) else content
            )
            raise ValueError(f"{target}: found {found!r}, expected class offsets, format {_FORMAT!r}, version 1")
        try:
            return cls(content["offsets"], content.get("class_names"), content.get("fitted_on"))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{target}: {error}") from error
