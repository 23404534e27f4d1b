"""What `count_labels` accepts as data, reduced to two forms: label files to scan, or items to take labels from."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .duplicates import refuse_repeated_files, refuse_repeated_items

_ACCEPTED = (
    "a MONAI data list, a Dataset, a DataLoader, label files (paths or a pattern such as 'labels/*.nii.gz') or the folder of a "
    "DICOM series"
)


@dataclass(frozen=True)
class Files:
    """Label files to be scanned as they are; with the images that belong to them, where the data list names them."""

    paths: list[Path]
    items: list[Mapping[str, Any] | None]

    def images(self) -> dict[str, str]:
        """Image file per label file, where the data list names one under ``"image"``."""
        return {
            str(path): _one_path(item["image"])
            for path, item in zip(self.paths, self.items, strict=True)
            if item is not None and _is_path(item.get("image"))
        }


@dataclass(frozen=True)
class Items:
    """Items of a data set by index, each with a label under ``key`` once ``transform`` has been applied."""

    dataset: Any
    transform: Any


@dataclass(frozen=True)
class Batches:
    """A DataLoader, counted batch by batch as it comes."""

    loader: Any
    transform: Any


def resolve_source(data: Any, key: str, transform: Any) -> Files | Items | Batches:
    """Find out what ``data`` is.

    Args:
        data: what was given to `count_labels`.
        key: key of the label in dictionary items.
        transform: transform to apply before counting, or None.

    Raises:
        FileNotFoundError: a path does not exist, or a pattern matches nothing.
        ValueError: there is no data, an item has no label, or a label is named twice.
        TypeError: the data are none of what is accepted.
    """
    # data of torch's types cannot exist before torch is imported, and counting files does not need it
    torch_data = sys.modules.get("torch.utils.data")
    if torch_data is not None and isinstance(data, torch_data.DataLoader):
        refuse_repeated_items(data.dataset, key)
        return Batches(data, transform)
    if isinstance(data, (str, os.PathLike)):
        data = _expand(data)
    # MONAI's Dataset is not a Sequence; a list is
    if torch_data is not None and isinstance(data, torch_data.Dataset):
        if hasattr(data, "__len__") and len(data) == 0:
            raise ValueError(f"data is an empty {type(data).__name__}, expected at least one item")
        if not hasattr(data, "__len__"):
            raise TypeError(f"data is a {type(data).__name__} without a length, expected a DataLoader over it")
        refuse_repeated_items(data, key)
        return Items(data, transform)
    if isinstance(data, Mapping):
        raise TypeError(f"data is a single item with the keys {sorted(map(str, data))}, expected {_ACCEPTED}")
    if not isinstance(data, Iterable):
        raise TypeError(f"data is a {type(data).__name__}, expected {_ACCEPTED}")
    items = list(data)
    if not items:
        raise ValueError(f"data is empty, expected at least one case: {_ACCEPTED}")
    if all(isinstance(item, (str, os.PathLike)) for item in items):
        named = [(path, os.fspath(item)) for item in items for path in _expand(item)]
        paths = [path for path, _ in named]
        refuse_repeated_files(paths, [f"named by {text!r}" for _, text in named])
        if transform is None:
            return Files(paths, [None] * len(paths))
        return Items([{key: str(path)} for path in paths], transform)
    for index, item in enumerate(items):
        if isinstance(item, Mapping) and key not in item:
            raise ValueError(f"data[{index}] has no key {key!r}, found {sorted(map(str, item))}")
    if transform is None and all(isinstance(item, Mapping) and _is_path(item[key]) for item in items):
        paths = [_existing(Path(_one_path(item[key]))) for item in items]
        refuse_repeated_files(
            paths, [f"data[{index}]" for index in range(len(paths))], [item.get("image") for item in items]
        )
        return Files(paths, items)
    if transform is None:
        for index, item in enumerate(items):
            if isinstance(item, Mapping) and _is_path_list(item[key]):
                raise ValueError(
                    f"data[{index}][{key!r}] is a list of {len(item[key])} files, expected one; a label in several files "
                    "needs a transform that joins them, such as LoadImaged"
                )
    refuse_repeated_items(items, key)
    return Items(items, transform)


def _expand(path: str | os.PathLike[str]) -> list[Path]:
    text = os.fspath(path)
    if Path(text).exists():
        return [Path(text)]
    if glob.has_magic(text):
        found = sorted(glob.glob(text, recursive=True))  # noqa: PTH207 - the pattern may be absolute
        if not found:
            raise FileNotFoundError(f"{text}: the pattern matches no file, expected label files")
        return [Path(name) for name in found]
    return [_existing(Path(text))]


def _existing(path: Path) -> Path:
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file, expected a label file")
    return path


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike)) or (_is_path_list(value) and len(value) == 1)


def _is_path_list(value: Any) -> bool:
    return (
        isinstance(value, Sequence)
        and not isinstance(value, (str, bytes))
        and len(value) > 0
        and all(isinstance(part, (str, os.PathLike)) for part in value)
    )


def _one_path(value: Any) -> str:
    return os.fspath(value if isinstance(value, (str, os.PathLike)) else value[0])
