"""Voxels per class of one label array: the one place where label values become class counts."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..labels import expected_classes, undeclared_labels
from .class_ids import as_integer, declared_class_ids
from .value_counter import ValueCounter

#: Without declared ids, a label with more different values than this is taken for an image given by mistake.
MAX_UNDECLARED_IDS = 1024


class VoxelCounts(NamedTuple):
    """Voxels per class of one label: ``counts`` (C,) int64 in the order of ``ids``, and the voxels left out."""

    ids: tuple[int, ...]
    counts: np.ndarray
    ignored: int


def label_voxel_counts(
    label: Any, ids: Sequence[int] | None = None, ignore_index: int | None = None, where: str = "label"
) -> VoxelCounts:
    """Count the voxels of every class in an array of class indices, exactly.

    Args:
        label: class indices of any shape: a NumPy array, torch tensor or MetaTensor of boolean, integer, or floating point
            type with integral values; on any device, in any memory layout and byte order.
        ids: the label values that are classes. None: those that occur.
        ignore_index: voxels with this value are counted as ignored, even if it is one of ``ids`` (that class then counts 0).
        where: what messages call the label, for example its file.

    Returns:
        `VoxelCounts`; the counts are int64 and exact at any size.

    Raises:
        ValueError: the label is empty; a value is NaN, not integral, or not among ``ids``; ``ids`` is None and a value is
            negative or there are more than 1024 different ones. The message names ``where``, the values found and those
            expected.
        TypeError: the label is not an array of numbers.

    Example:
        >>> label_voxel_counts(np.array([[0, 0, 1], [1, 1, 255]]), ids=[0, 1, 2], ignore_index=255)
        VoxelCounts(ids=(0, 1, 2), counts=array([2, 3, 0]), ignored=1)
    """
    declared = declared_class_ids(None, ids)
    return select_classes(
        value_counts(label, where, _expectation(declared, ignore_index)), declared, ignore_index, where
    )


def value_counts(label: Any, where: str = "label", expected: str = "integer class ids") -> dict[int, int]:
    """How often each value occurs in an array, ``{value: count}`` in ascending order.

    Args:
        label: as for `label_voxel_counts`.
        where: what messages call the label.
        expected: what messages say was expected.

    Raises:
        ValueError: the label is empty, or a value is NaN, infinite or not integral.
        TypeError: the label is not an array of numbers.

    Example:
        >>> import torch
        >>> value_counts(torch.tensor([[3.0, 0.0, 3.0]]))
        {0: 1, 3: 2}
    """
    if _on_device(label):
        # counted where it lies: only one number per class crosses the bus, not one per voxel
        import torch

        tensor, repeats = torch.unique(label.detach().as_subclass(torch.Tensor), return_counts=True)
        if tensor.numel() == 0:
            _refuse_empty(where, label)
        return dict(zip(value_counts(tensor.cpu(), where, expected), repeats.tolist(), strict=True))
    label = as_numpy(label)
    if not isinstance(label, np.ndarray):
        raise TypeError(f"{where}: found {type(label).__name__}, expected an array or tensor of {expected}")
    if label.size == 0:
        _refuse_empty(where, label)
    counter = ValueCounter(where, expected)
    counter.add(label)
    return counter.counts()


def as_numpy(label: Any) -> Any:
    """The memory of a tensor as an array; anything else stays as it is."""
    # there is no tensor unless torch has been imported, and counting files does not need it
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(label, torch.Tensor):
        return label
    tensor = label.detach().cpu().as_subclass(torch.Tensor)
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def _on_device(label: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(label, torch.Tensor) and label.device.type != "cpu"


def select_classes(
    values: Mapping[int, int], ids: Sequence[int] | None, ignore_index: int | None, where: str
) -> VoxelCounts:
    """Class counts from counts per value; a value that is neither a class nor ignored is an error that says so.

    Args:
        values: ``{value: count}``, as `value_counts` gives them.
        ids: the label values that are classes. None: those that occur.
        ignore_index: the value that is left out.
        where: what messages call the label.

    Raises:
        ValueError: see `label_voxel_counts`.

    Example:
        >>> select_classes({0: 70, 255: 30}, [0, 1], None, "case_7.png")
        Traceback (most recent call last):
        ValueError: case_7.png: found the label value(s) 255 (30 voxels) besides 0, expected class ids [0, 1]. ...
    """
    if ignore_index is not None:
        ignore_index = as_integer(ignore_index, "ignore_index")
    left = {value: count for value, count in values.items() if value != ignore_index}
    ignored = values.get(ignore_index, 0) if ignore_index is not None else 0
    if ids is None:
        ids = sorted(left)
        if ids and (ids[0] < 0 or len(ids) > MAX_UNDECLARED_IDS):
            raise ValueError(
                f"{where}: found {len(ids)} label value(s) from {ids[0]} to {ids[-1]}, expected "
                f"{_expectation(None, ignore_index)}.{_hint(left, None, list(left))}"
            )
    else:
        declared = set(ids)
        strangers = [value for value in left if value not in declared]
        if strangers:
            beside = [value for value in left if value in declared]
            raise ValueError(
                undeclared_labels(where, {v: left[v] for v in strangers}, _expectation(ids, ignore_index), beside)
                + _hint(left, ids, strangers)
            )
    counts = np.array([left.get(value, 0) for value in ids], dtype=np.int64)
    return VoxelCounts(tuple(ids), counts, ignored)


def _expectation(ids: Sequence[int] | None, ignore_index: int | None) -> str:
    if ids is not None:
        return expected_classes(ids, ignore_index)
    text = f"at most {MAX_UNDECLARED_IDS} integer class ids >= 0"
    return text if ignore_index is None else f"{text} or the ignored value {ignore_index}"


def _hint(values: Mapping[int, int], ids: Sequence[int] | None, strangers: Sequence[int]) -> str:
    if set(values) <= {0, 255} and 255 in strangers:
        return " A mask drawn with 0 and 255: declare ids=[0, 255], or write it as 0 and 1."
    if len(strangers) == 1 and strangers[0] in (-1, 255):
        return f" If {strangers[0]} marks voxels to leave out, say ignore_index={strangers[0]}."
    if min(strangers) < -1 or len(strangers) > 64:
        return " This looks like an image given as a label."
    if ids is not None and strangers:
        return f" Declare every label value: num_classes={max(values) + 1} or ids=[...]."
    return ""


def _refuse_empty(where: str, label: Any) -> NoReturn:
    raise ValueError(f"{where}: found an empty label of shape {tuple(label.shape)}, expected at least one voxel")
