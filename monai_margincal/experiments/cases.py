"""The voxels of the cases, read once and kept in memory."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..counting.class_counts import ClassCounts
from ..datasets.groups import group_of
from ..labels import class_labels

__all__ = ["Case", "CaseStore", "class_counts"]


@dataclass(frozen=True, eq=False)
class Case:
    """One image with its labels after the task's transform.

    Attributes:
        name: of the case.
        image: float32 (C, *spatial).
        label: class indices, uint8 (*spatial).
        group: what it shares with other cases, such as the patient; empty where the data list does not say.
    """

    name: str
    image: torch.Tensor
    label: torch.Tensor
    group: str = ""


class CaseStore:
    """Reads every file once per process."""

    def __init__(self) -> None:
        self._digests: dict[tuple[str, str], str] = {}
        self._cases: dict[tuple[str, str], Case] = {}

    def digest(self, item: Mapping[str, Any]) -> str:
        """SHA-256 of an item's image and label files."""
        key = (str(item["image"]), str(item["label"]))
        if key not in self._digests:
            content = hashlib.sha256()
            for path in map(Path, key):
                # a DICOM series is a folder
                for file in sorted(path.iterdir()) if path.is_dir() else [path]:
                    content.update(file.read_bytes())
            self._digests[key] = content.hexdigest()
        return self._digests[key]

    def load(
        self, items: Sequence[Mapping[str, Any]], transform: Any, build: Callable[[Any], Any], num_classes: int
    ) -> list[Case]:
        """Cases of a data list, read unless they are in memory already.

        Raises:
            ValueError: a label is not a class index, or image and label differ in shape.
        """
        fingerprint = json.dumps(transform, sort_keys=True)
        missing = [item for item in items if (fingerprint, self.digest(item)) not in self._cases]
        if missing:
            from monai.transforms import Compose

            from ..transforms.nvimgcodec import silence_nvimgcodec

            silence_nvimgcodec()
            chain = Compose(build(transform))
            for item in missing:
                self._cases[fingerprint, self.digest(item)] = _read(item, chain, num_classes)
        # what is kept is of the files, the group is of the data list
        return [
            dataclasses.replace(self._cases[fingerprint, self.digest(item)], group=group_of(item) or "")
            for item in items
        ]


def _read(item: Mapping[str, Any], chain: Callable[[Any], Any], num_classes: int) -> Case:
    data = chain(dict(item))
    image, label = (torch.as_tensor(data[key]).as_subclass(torch.Tensor) for key in ("image", "label"))
    if label.ndim != image.ndim or label.shape[0] != 1 or label.shape[1:] != image.shape[1:]:
        raise ValueError(
            f"{item['label']}: found a label of shape {tuple(label.shape)} for an image of shape {tuple(image.shape)} after "
            f"the transform, expected {(1, *image.shape[1:])}"
        )
    labels, _ = class_labels(label[0], num_classes, where=str(item["label"]))
    if not bool(torch.isfinite(image).all()):
        raise ValueError(
            f"{item['image']}: found NaN or infinite intensities after the transform, expected finite ones"
        )
    return Case(str(item["case"]), image.to(torch.float32).contiguous(), labels.to(torch.uint8).contiguous())


def class_counts(cases: Sequence[Case], class_names: Sequence[str]) -> ClassCounts:
    """Count the voxels per class of the training cases, after the transform."""
    classes = len(class_names)
    total = sum(torch.bincount(case.label.flatten(), minlength=classes) for case in cases)
    return ClassCounts(torch.as_tensor(total).tolist(), names=list(class_names))
