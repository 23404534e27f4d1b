"""Count the labels that items of a data set hold once their transforms have been applied."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from monai.data.meta_tensor import MetaTensor
from monai.data.utils import decollate_batch
from monai.transforms.transform import Randomizable

from ..counting.case_names import case_name
from ..counting.case_record import CaseRecord
from ..counting.label_file import count_file, spacing_and_volume
from ..errors import naming_files
from ..transforms.count_labels import CountLabels, file_of
from .duplicates import label_files
from .identity import item_identity, transform_identity


class LabelItems:
    """The items of a data set, counted by index; can be sent to a worker process.

    Random transforms start every item from a seed made of ``seed`` and the item's index, so the counts depend neither on the
    number of workers nor on the order; the caller's own transforms are copied and not touched.

    Args:
        dataset: anything with ``__getitem__`` and ``__len__``, or an iterable.
        transform: applied to each item, or None.
        key: key of the label in dictionary items.
        ids: the declared label values, or None.
        ignore_index: the value that is ignored, or None.
        seed: seed of random transforms.
    """

    def __init__(
        self, dataset: Any, transform: Any, key: str, ids: Sequence[int] | None, ignore_index: int | None, seed: int
    ) -> None:
        own = getattr(dataset, "transform", None)
        if isinstance(own, Randomizable):
            dataset = copy.copy(dataset)
            dataset.transform = copy.deepcopy(own)
        self.dataset = dataset
        self.transform: Any = copy.deepcopy(transform) if isinstance(transform, Randomizable) else transform
        self.key = key
        self.ids = ids
        self.ignore_index = ignore_index
        self.seed = seed
        self._counter = CountLabels(ids=ids, ignore_index=ignore_index)
        chain = [getattr(dataset, "transform", None), transform]
        self._chain = " -> ".join(name for part in chain for name in transform_names(part))
        self._is_random = any(is_random(part) for part in chain)

    def __len__(self) -> int:
        return len(self.dataset)

    def count(self, index: int) -> CaseRecord:
        """The counts of one item.

        Raises:
            ValueError: the item has no label, or the label is faulty; the message names its file or index.
        """
        self._seed_transforms(index)
        path = self._path_of(index)
        with naming_files(self.place(index), "the transforms failed", raises=ValueError):
            item = self.dataset[index]
            item = item if self.transform is None else self.transform(item)
        return self.count_item(item, index, path)

    def count_item(self, item: Any, index: int, path: Path | None) -> CaseRecord:
        """The counts of one item that is already transformed; a list of items, as crops make, counts together."""
        if isinstance(item, (list, tuple)) and item and all(isinstance(part, Mapping) for part in item):
            records = [self.count_item(part, index, path) for part in item]
            total = records[0]
            for record in records[1:]:
                total = total.merged(record)
            return total
        label = item
        if isinstance(item, Mapping):
            if self.key not in item:
                raise ValueError(f"item {index} has no key {self.key!r}, found {sorted(map(str, item))}")
            label = item[self.key]
        elif isinstance(item, (list, tuple)) and len(item) == 2:
            # the (image, label) pairs of torch and of MONAI's ArrayDataset
            label = item[1]
        if isinstance(label, (str, Path)):
            return count_file(Path(label), self.ids, self.ignore_index)
        source = file_of(label)
        name = case_name(Path(source)) if source else case_name(path) if path else f"item_{index:05d}"
        counted = self._counter.count(_channel_first(label), source or (str(path) if path else f"item {index}"))
        values = {value: count for value, count in zip(counted.ids, counted.counts.tolist(), strict=True) if count}
        if counted.ignored and self.ignore_index is not None:
            values[self.ignore_index] = values.get(self.ignore_index, 0) + counted.ignored
        affine = _affine(label)
        spacing, volume = spacing_and_volume(affine)
        return CaseRecord(
            name,
            dict(sorted(values.items())),
            file=source or (str(path) if path else None),
            shape=tuple(label.shape[1:]) if label.ndim > 1 else tuple(label.shape),
            dtype=str(label.dtype).removeprefix("torch."),
            spacing=spacing,
            voxel_volume=volume,
            affine=None if affine is None else affine.tolist(),
            reader=self._chain or "array",
        )

    def place(self, index: int) -> str:
        """What messages call an item: its label file, or its index."""
        return str(self._path_of(index) or f"item {index}")

    def describe(self, seeded: bool = True) -> str:
        """What is counted, in one line."""
        if not self._chain:
            return "labels as the data set gives them"
        random = f" (random, seed {self.seed})" if seeded else " (random)"
        return f"after {self._chain}{random if self._is_random else ''}"

    def question(self) -> dict[str, Any]:
        """What the counts depend on besides the items: the transforms and their seed.

        Raises:
            ValueError: the transforms cannot be identified, or the items only by reading them.
        """
        if not isinstance(self._entries(), Sequence):
            raise ValueError(
                f"cache_dir is given with a {type(self.dataset).__name__}, whose items have no identity without reading them: "
                "expected a MONAI data list or data set"
            )
        self._seed_transforms(0)
        own = transform_identity(getattr(self.dataset, "transform", None))
        return {"what": self.describe(), "own": own, "transform": transform_identity(self.transform), "seed": self.seed}

    def identity(self, index: int) -> str:
        """Identity of an item before its transforms."""
        # random transforms draw by index, so the index belongs to the identity
        return f"{index if self._is_random else ''} {item_identity(self._entries()[index])}"

    def _seed_transforms(self, index: int) -> None:
        for transform in (getattr(self.dataset, "transform", None), self.transform):
            if isinstance(transform, Randomizable):
                transform.set_random_state(seed=(self.seed * 1_000_003 + index) % 2**32)

    def _entries(self) -> Any:
        return getattr(self.dataset, "data", self.dataset)

    def _path_of(self, index: int) -> Path | None:
        entries = self._entries()
        try:
            entry = entries[index] if isinstance(entries, Sequence) else None
        except (IndexError, TypeError):
            return None
        files = label_files(entry, self.key)
        return files[0] if len(files) == 1 else None


def try_count(items: LabelItems, index: int) -> CaseRecord | Exception:
    """The counts of one item, or what is wrong with it."""
    try:
        return items.count(index)
    except (ValueError, OSError, TypeError) as error:
        return error


def count_batches(
    loader: Any, items: LabelItems, first: int = 0, step: int = 1
) -> Iterator[tuple[int, CaseRecord | Exception]]:
    """Count what a DataLoader yields, label by label.

    Args:
        loader: the DataLoader; its own workers load.
        items: how to count one label (its data set is not used).
        first: number of the first label; labels without a file are named by number.
        step: difference from it to the number of the next one.
    """
    index = first
    for batch in loader:
        for item in _single_items(batch, items.key):
            item = item if items.transform is None else items.transform(item)
            try:
                yield index, items.count_item(item, index, None)
            except (ValueError, TypeError) as error:
                yield index, error
            index += step


def _single_items(batch: Any, key: str) -> Iterator[Any]:
    label = batch
    if isinstance(batch, Mapping):
        if key not in batch:
            raise ValueError(f"a batch of the DataLoader has no key {key!r}, found {sorted(map(str, batch))}")
        label = batch[key]
    elif isinstance(batch, (list, tuple)) and len(batch) == 2 and isinstance(batch[1], torch.Tensor):
        label = batch[1]
    if isinstance(label, MetaTensor) and label.is_batch:
        parts = decollate_batch(label)
    elif isinstance(label, (torch.Tensor, np.ndarray, list, tuple)):
        parts = list(label)
    else:
        raise ValueError(f"a batch of the DataLoader holds a {type(label).__name__} under {key!r}, expected a tensor")
    yield from ({key: part} for part in parts)


def transform_names(transform: Any) -> list[str]:
    """Class names along a chain of transforms, ``[]`` for None."""
    if transform is None:
        return []
    inner = getattr(transform, "transforms", None)
    if isinstance(inner, (list, tuple)):
        return [name for part in inner for name in transform_names(part)]
    return [getattr(transform, "__name__", type(transform).__name__)]


def is_random(transform: Any) -> bool:
    """Whether any transform of a chain draws random numbers."""
    inner = getattr(transform, "transforms", None)
    if isinstance(inner, (list, tuple)):
        return any(is_random(part) for part in inner)
    return isinstance(transform, Randomizable)


def _channel_first(label: Any) -> Any:
    """A label without a channel dimension as (1, ...), where its metadata say that it has none."""
    if isinstance(label, MetaTensor):
        spatial = label.meta.get("spatial_shape")
        channel = label.meta.get("original_channel_dim")
        # MONAI's readers write NaN (older ones "no_channel") for a file without channels
        has_none = channel == "no_channel" or (isinstance(channel, float) and np.isnan(channel))
        if has_none and spatial is not None and label.ndim == len(spatial):
            return label[None]
    return label


def _affine(label: Any) -> np.ndarray | None:
    if not isinstance(label, MetaTensor) or "affine" not in label.meta:
        return None
    affine = np.asarray(torch.as_tensor(label.affine, device="cpu"), dtype=float)
    return affine if affine.shape == (4, 4) and np.isfinite(affine).all() else None
