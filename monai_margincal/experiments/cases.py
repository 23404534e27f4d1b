"""Which cases train, validate and test, and their voxels in memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..counting.class_counts import ClassCounts
from ..labels import class_labels

__all__ = ["Case", "CaseStore", "TaskCases", "class_counts", "select_task_cases"]


@dataclass(frozen=True, eq=False)
class Case:
    """One image with its labels after the task's transform.

    Attributes:
        name: of the case.
        image: float32 (C, *spatial).
        label: class indices, uint8 (*spatial).
    """

    name: str
    image: torch.Tensor
    label: torch.Tensor


@dataclass(frozen=True)
class TaskCases:
    """The three parts of a data list, with fingerprints of the contents of their files."""

    training: tuple[Mapping[str, Any], ...]
    validation: tuple[Mapping[str, Any], ...]
    test: tuple[Mapping[str, Any], ...]
    digests: Mapping[str, str]

    def digest(self, part: str) -> str:
        """Fingerprint of the part's cases, in order: names and contents, not their paths."""
        items = getattr(self, part)
        return hashlib.sha256(
            json.dumps([(str(i["case"]), self.digests[str(i["case"])]) for i in items]).encode()
        ).hexdigest()[:16]


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

            chain = Compose(build(transform))
            for item in missing:
                self._cases[fingerprint, self.digest(item)] = _read(item, chain, num_classes)
        return [self._cases[fingerprint, self.digest(item)] for item in items]


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


def select_task_cases(
    data: Sequence[Mapping[str, Any]],
    parts: Mapping[str, int | Sequence[str]],
    split_seed: int,
    seed: int,
    where: str,
    store: CaseStore,
) -> TaskCases:
    """Divide a data list: ``split_seed`` draws test and validation cases, ``seed`` draws training cases from the rest.

    A part is a number of cases or a list of case names. A name may appear in two parts: with only two volumes there is no other
    way, and the study has to say so.

    Raises:
        ValueError: a name is unknown or repeated, or there are too few cases.
    """
    by_name = {str(item["case"]): item for item in data}
    if len(by_name) < len(data):
        raise ValueError(f"{where}: found {len(data)} items with {len(by_name)} case names, expected distinct names")
    named = {part: [str(name) for name in value] for part, value in parts.items() if not isinstance(value, int)}
    for part, names in named.items():
        unknown = [name for name in names if name not in by_name]
        if unknown or not names or len(set(names)) < len(names):
            raise ValueError(f"{where}::{part}: found the cases {names}, expected distinct names of the data list")
    taken = {name for names in named.values() for name in names}
    # RandomState's stream is frozen across NumPy versions
    left = sorted(name for name in by_name if name not in taken)
    order = [left[i] for i in np.random.RandomState(split_seed).permutation(len(left))]
    chosen = dict(named)
    for part in ("test", "validation", "training"):
        if part in named:
            continue
        number = parts[part]
        if part == "training":
            order = [order[i] for i in np.random.RandomState([seed, 40]).permutation(len(order))]
        if not isinstance(number, int) or number < (1 if part != "validation" else 0) or number > len(order):
            raise ValueError(
                f"{where}::{part}: found {number!r}, expected a number of cases up to the {len(order)} left"
            )
        chosen[part], order = sorted(order[:number]), order[number:]
    items = {part: tuple(by_name[name] for name in names) for part, names in chosen.items()}
    used = {str(item["case"]): item for part in items.values() for item in part}
    digests = {name: store.digest(item) for name, item in used.items()}
    return TaskCases(items["training"], items["validation"], items["test"], digests)
