"""From logits to classes: the largest logit, or the one that is largest once every class has its offset, fitted for the IoU."""

from __future__ import annotations

from .class_offsets import ClassOffsets
from .decide_class import DecideClass, DecideClassD, DecideClassd, DecideClassDict
from .fit import fit_class_offsets
from .offsets_handler import ClassOffsetsHandler

__all__ = [
    "ClassOffsets",
    "ClassOffsetsHandler",
    "DecideClass",
    "DecideClassD",
    "DecideClassDict",
    "DecideClassd",
    "fit_class_offsets",
]
