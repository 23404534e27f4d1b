"""How to tell that a file, an item or a chain of transforms is still the same as when it was counted."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from ..formats import companions_of

#: Up to this size a file is fingerprinted as a whole; beyond it by blocks at its ends and spread over it.
_WHOLE_BYTES = 64 << 20
_BLOCK_BYTES = 1 << 20
_BLOCKS = 16


def file_identity(path: Path) -> str:
    """Path, size, time of change and content fingerprint of a label file, of everything it refers to, or of a folder.

    Raises:
        FileNotFoundError: a file does not exist.
        ValueError: the header is damaged.
    """
    return json.dumps([_one_file(file) for file in companions_of(path)])


def _one_file(path: Path) -> list[Any]:
    status = path.stat()
    return [str(path.absolute()), status.st_size, status.st_mtime_ns, fingerprint(path)]


def fingerprint(path: Path) -> str:
    """A hash of a file's content: all of it up to 64 MiB, blocks spread over it beyond."""
    digest = hashlib.blake2b(digest_size=16)
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= _WHOLE_BYTES:
            while block := file.read(_BLOCK_BYTES):
                digest.update(block)
        else:
            digest.update(str(size).encode())
            for number in range(_BLOCKS):
                file.seek(number * (size - _BLOCK_BYTES) // (_BLOCKS - 1))
                digest.update(file.read(_BLOCK_BYTES))
    return digest.hexdigest()


def item_identity(item: Any) -> str:
    """Identity of an item of a data list: of every file it names, of every array it holds, and of everything else in it.

    Raises:
        ValueError: it holds something whose identity cannot be determined.
    """
    return json.dumps(_describe(item))


def _describe(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _describe(value[name]) for name in sorted(value, key=str)}
    if isinstance(value, (list, tuple)):
        return [_describe(part) for part in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (str, os.PathLike)):
        path = Path(value)
        exists = len(str(value)) < 4096 and path.exists()
        return [str(value), json.loads(file_identity(path))] if exists else str(value)
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.ascontiguousarray(value)
        digest = hashlib.blake2b(array.tobytes(), digest_size=16).hexdigest()
        return [array.dtype.str, list(array.shape), digest]
    raise ValueError(f"cannot tell the identity of a {type(value).__name__}, expected files, arrays and plain values")


def transform_identity(transform: Any) -> str:
    """A hash of a chain of transforms with all its parameters, and of the code of functions it was given.

    Raises:
        ValueError: it cannot be pickled (a lambda, an open file): such a chain has no identity to compare.
    """
    if transform is None:
        return ""
    buffer = io.BytesIO()
    try:
        _IdentityPickler(buffer).dump(transform)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise ValueError(
            f"transform cannot be cached, because it cannot be pickled ({error}); expected functions that have a name in their "
            "module instead of lambdas, or cache_dir=None"
        ) from error
    return hashlib.blake2b(buffer.getvalue(), digest_size=16).hexdigest()


class _IdentityPickler(pickle.Pickler):
    """Pickles a function of the user with its code, so that an edited function counts as another one."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, FunctionType) and obj.__name__ != "<lambda>":
            code = obj.__code__
            described = (obj.__module__, obj.__qualname__, code.co_code.hex(), repr(code.co_names), _constants(code))
            return (str, (repr(described),))
        return NotImplemented


def _constants(code: Any) -> str:
    # nested code objects print their address, so their own code stands for them
    parts = [
        _constants(part) + part.co_code.hex() if hasattr(part, "co_code") else repr(part) for part in code.co_consts
    ]
    return repr(parts)
