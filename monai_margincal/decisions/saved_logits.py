"""Logits and labels that some program has saved, one file each per case."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch

from ..errors import naming_files
from ..formats import describe_label
from ..formats.numpy_arrays import check_arrays

__all__ = ["saved_case"]

_ARRAYS = (".npy", ".npz")


def saved_case(
    logits_file: str | os.PathLike[str], label_file: str | os.PathLike[str]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Read the logits and the label of a case, which must lie voxel on voxel.

    Args:
        logits_file: ``.npy`` or ``.npz`` (one array, or the one named ``logits``), channel first (C, ...); or an image such as
            NIfTI, channel last (X, Y, Z, C) as MONAI saves it, where as many axes as the label's are one logit of class 1
            against 0.
        label_file: an image of class indices in any format that `margincal count` reads, or one array, or the one named
            ``labels``.

    Returns:
        logits (C, ...), of an ``.npy`` file read from the disk as needed, and labels (...).

    Raises:
        FileNotFoundError: a file does not exist.
        ValueError: a file is damaged, or holds no numbers; the message names it.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> np.save(folder / "logits.npy", np.zeros((2, 4, 3), np.float32))
        >>> np.save(folder / "label.npy", np.zeros((4, 3), np.uint8))
        >>> [tuple(part.shape) for part in saved_case(folder / "logits.npy", folder / "label.npy")]
        [(2, 4, 3), (4, 3)]
    """
    label = _array(Path(label_file), "labels")
    logits = _array(Path(logits_file), "logits")
    if Path(logits_file).suffix.lower() not in _ARRAYS:
        logits = logits[None] if logits.ndim == label.ndim else np.moveaxis(logits, -1, 0)
    return torch.from_numpy(logits), torch.from_numpy(label)


def _array(path: Path, name: str) -> np.ndarray:
    with naming_files(path, f"cannot be read, expected {name}", raises=ValueError):
        if path.suffix.lower() not in _ARRAYS:
            found = describe_label(path).load()
        else:
            check_arrays(path)
            # copied where it is written to, which nobody does: PyTorch warns of arrays that cannot be written
            found = np.load(path, mmap_mode="c", allow_pickle=False)
        if not isinstance(found, np.ndarray):
            keys = list(found.files)
            if name not in keys and len(keys) != 1:
                raise ValueError(f"{path}: found the arrays {keys}, expected one, or one named {name!r}")
            found = found[name if name in keys else keys[0]]
        if found.dtype.kind not in "fiub":
            raise ValueError(f"{path}: found numbers of type {found.dtype}, expected {name}")
        return found.astype(_torch_dtype(found.dtype), copy=False)


def _torch_dtype(dtype: np.dtype) -> np.dtype:
    """The same type in this machine's byte order, or the next that PyTorch computes with."""
    wider: dict[str, np.dtype] = {"uint16": np.dtype(np.int32), "uint32": np.dtype(np.int64)}
    return wider[dtype.name] if dtype.name in wider else dtype.newbyteorder("=")
