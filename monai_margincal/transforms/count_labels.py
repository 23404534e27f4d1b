"""MONAI transforms that count the voxels per class wherever they stand in a chain, and pass the label through."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from monai.config import KeysCollection
from monai.data.meta_tensor import MetaTensor
from monai.transforms.transform import MapTransform, Transform
from monai.utils.enums import TransformBackends

from ..counting.class_counts import ClassCounts
from ..counting.class_ids import as_integer, declared_class_ids
from ..counting.one_hot import one_hot_voxel_counts
from ..counting.voxel_counts import VoxelCounts, label_voxel_counts

#: Entries of ``MetaTensor.meta`` (and of the item, for labels without meta data) that `CountLabels` writes.
COUNTS_KEY = "class_counts"
IDS_KEY = "class_ids"
IGNORED_KEY = "ignored_voxels"


class CountLabels(Transform):
    """Count the voxels per class of a channel-first label and pass the label through unchanged.

    The counts are those of the label *at this place of the chain*: put it after ``EnsureChannelFirst`` for the label file,
    after ``Spacing`` for what resampling leaves, after a random crop for what the network sees.

    * The first dimension is always the channel. One channel: class indices, (1, ...). As many channels as declared ids: a
      one-hot label, (C, ...), checked voxel by voxel. With one declared id, one channel holds class indices. Any other number
      of channels is an error.
    * A `MetaTensor` carries the result in its ``meta``: ``class_counts`` (C,) and ``class_ids`` (C,), int64 tensors, and
      ``ignored_voxels``, an int64 scalar. They survive later transforms, collation, DataLoader workers and decollation; a
      batch holds ``class_counts`` (B, C). A label without meta data has no place for them: see `latest` and `CountLabelsd`.
    * With neither ``num_classes`` nor ``ids`` the ids are those that occur in each label, so the lengths differ from case to
      case and such labels cannot be collated into one batch. Declare the ids where a DataLoader follows.

    Args:
        num_classes: number of classes including background, for the ids 0 ... num_classes - 1.
        ids: the label values that are classes, if they are not consecutive.
        ignore_index: label value that is counted as ignored and belongs to no class.

    Raises:
        ValueError: at construction, ids are repeated or contradict ``num_classes``. At a call, the label is empty, has a value
            outside the ids, a value that is not an integer, or channels that are not one-hot; the message gives the file (if
            the label's meta data knows it), the values found and those expected.
        TypeError: the label is neither an array nor a tensor.

    Example:
        >>> from monai.data import MetaTensor
        >>> label = CountLabels(num_classes=3)(MetaTensor(torch.tensor([[0.0, 0.0, 2.0]])))
        >>> label.meta["class_counts"]
        tensor([2, 0, 1])
    """

    backend = [TransformBackends.TORCH, TransformBackends.NUMPY]  # noqa: RUF012 - MONAI declares it per instance

    def __init__(
        self, num_classes: int | None = None, ids: Sequence[int] | None = None, ignore_index: int | None = None
    ) -> None:
        super().__init__()
        self.ids = declared_class_ids(num_classes, ids)
        self.ignore_index = None if ignore_index is None else as_integer(ignore_index, "ignore_index")
        #: `ClassCounts` of the label counted last in this process, or None before the first.
        self.latest: ClassCounts | None = None

    def count(self, label: Any, where: str | None = None) -> VoxelCounts:
        """Count the voxels per class of one channel-first label, without changing it.

        Args:
            label: (1, ...) class indices or (C, ...) one-hot.
            where: the name of the label in messages; default: its file, if the meta data knows it.
        """
        where = where or file_of(label) or "label"
        if not isinstance(label, (np.ndarray, torch.Tensor)):
            raise TypeError(f"{where}: found {type(label).__name__}, expected an array or tensor with channel first")
        channels = label.shape[0] if label.ndim > 1 else 1
        if channels == 1:
            return label_voxel_counts(label, self.ids, self.ignore_index, where)
        if self.ids is not None and channels == len(self.ids):
            return one_hot_voxel_counts(label, self.ids, self.ignore_index, where)
        one_hot = "" if self.ids is None else f" or {len(self.ids)} (one-hot, ids {list(self.ids)})"
        raise ValueError(
            f"{where}: found {channels} channels (shape {tuple(label.shape)}), expected 1 (class indices){one_hot}. A label "
            "without a channel dimension needs EnsureChannelFirst before it."
        )

    def __call__(self, label: Any) -> Any:
        """Count ``label``, put the counts into its ``meta`` if it has one, and return the same object."""
        counted = self.count(label)
        self.latest = ClassCounts(counted.counts, counted.ids, ignored=counted.ignored)
        if isinstance(label, MetaTensor):
            label.meta.update(_as_meta(counted))
        return label


class CountLabelsd(MapTransform):
    """Dictionary version of `CountLabels`: counts the labels under ``keys``.

    A label that is a `MetaTensor` carries its counts in ``meta``. For a plain array or tensor they go to the item itself, as
    ``item["class_counts"][key]`` (and ``class_ids``, ``ignored_voxels`` likewise): not to a key ``<label>_...``, which MONAI's
    spatial transforms would take for their own meta data.

    Args:
        keys: keys of the labels.
        num_classes: see `CountLabels`.
        ids: see `CountLabels`.
        ignore_index: see `CountLabels`.
        allow_missing_keys: whether an item may lack a key.

    Raises:
        KeyError: an item lacks a key and ``allow_missing_keys`` is False.
        ValueError, TypeError: see `CountLabels`.

    Example:
        >>> item = CountLabelsd("label", num_classes=2)({"label": np.array([[0, 1, 1]])})
        >>> item["class_counts"]["label"]
        tensor([1, 2])
    """

    backend = CountLabels.backend

    def __init__(
        self,
        keys: KeysCollection,
        num_classes: int | None = None,
        ids: Sequence[int] | None = None,
        ignore_index: int | None = None,
        allow_missing_keys: bool = False,
    ) -> None:
        super().__init__(keys, allow_missing_keys)
        self.counter = CountLabels(num_classes, ids, ignore_index)

    def __call__(self, data: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        """Return the item with the same labels, counted."""
        item = dict(data)
        for key in self.key_iterator(item):
            label = self.counter(item[key])
            if not isinstance(label, MetaTensor):
                latest = self.counter.latest
                if latest is not None:
                    result = _as_meta(VoxelCounts(latest.ids, latest.counts, latest.ignored))
                    for name, value in result.items():
                        item[name] = {**item.get(name, {}), key: value}
        return item


CountLabelsD = CountLabelsDict = CountLabelsd


def file_of(label: Any) -> str | None:
    """The file a label was read from, if its meta data knows it."""
    if not isinstance(label, MetaTensor):
        return None
    name = label.meta.get("filename_or_obj")
    # after collation it is a list; one tensor then stands for several files
    if isinstance(name, (list, tuple)):
        name = name[0] if len(name) == 1 else None
    return str(name) if name else None


def counts_in_meta(label: MetaTensor) -> list[ClassCounts]:
    """Read what `CountLabels` put into the meta data of a label, or of a collated batch of labels.

    Args:
        label: a `MetaTensor`, one label (1, ...) or a batch (B, 1, ...).

    Returns:
        one `ClassCounts` per label.

    Raises:
        ValueError: there are no counts: the label did not pass `CountLabels`.

    Example:
        >>> from monai.data import MetaTensor
        >>> counts_in_meta(CountLabels(num_classes=2)(MetaTensor(torch.zeros(1, 4, 4))))
        [ClassCounts({0: 16, 1: 0})]
    """
    if not isinstance(label, MetaTensor) or COUNTS_KEY not in label.meta:
        raise ValueError(f"found no {COUNTS_KEY!r} in the label's meta data, expected a label that passed CountLabels")
    counts = torch.as_tensor(label.meta[COUNTS_KEY], device="cpu")
    ids = torch.as_tensor(label.meta[IDS_KEY], device="cpu")
    ignored = torch.as_tensor(label.meta[IGNORED_KEY], device="cpu")
    if counts.ndim == 1:
        counts, ids, ignored = counts[None], ids[None], ignored.reshape(1)
    return [
        ClassCounts(row.tolist(), row_ids.tolist(), ignored=int(left_out))
        for row, row_ids, left_out in zip(counts, ids, ignored, strict=True)
    ]


def _as_meta(counted: VoxelCounts) -> dict[str, torch.Tensor]:
    return {
        COUNTS_KEY: torch.from_numpy(counted.counts.copy()),
        IDS_KEY: torch.tensor(counted.ids, dtype=torch.int64, device="cpu"),
        IGNORED_KEY: torch.tensor(counted.ignored, dtype=torch.int64, device="cpu"),
    }
