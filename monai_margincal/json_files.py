"""JSON files: read with a message that names the file, and not replaced where they are somebody else's."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .files import expect_writable
from .streams import is_stream

__all__ = ["expect_replaceable", "read_json"]


def read_json(path: str | os.PathLike[str], expected: str) -> Any:
    """What a JSON file holds.

    Args:
        path: the file.
        expected: what it should be, for messages, such as ``"a data list in JSON"``.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is a folder, or not JSON in UTF-8; the message names it.

    Example:
        >>> read_json("none.json", "a data list in JSON")
        Traceback (most recent call last):
        FileNotFoundError: none.json: no such file, expected a data list in JSON
    """
    file = Path(path)
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{file}: no such file, expected {expected}") from None
    except IsADirectoryError as error:
        raise ValueError(f"{file}: found a folder, expected {expected}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file}: found no JSON ({error}), expected {expected}") from error


def expect_replaceable(path: str | os.PathLike[str], read: Callable[[Path], Any], refusal: str) -> None:
    """Raise now, before there is anything to write, unless a file can be written and replaces only a file of its own kind.

    Args:
        path: the file that is going to be written; see `monai_margincal.files.replacing` for pipes and devices.
        read: reads a file of its kind; raises a ValueError for any other.
        refusal: what is said of another file, after its name.

    Raises:
        FileExistsError: the file exists and is of another kind.
        OSError: the file cannot be written; the message names it.
    """
    expect_writable(path)
    target = Path(path)
    if is_stream(target) or not target.exists():
        return
    try:
        read(target)
    except ValueError as error:
        raise FileExistsError(f"{target}{refusal} ({error})") from error
