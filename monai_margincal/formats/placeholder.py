"""Files that hold nothing of what their names say: pointers of git-lfs and git-annex, dangling links, empty files, pipes."""

from __future__ import annotations

import re
from pathlib import Path

from ..streams import is_stream

#: no pointer is longer
_MAX_POINTER = 4096
_POINTERS = {
    "a git-lfs pointer": (re.compile(rb"version https://git-lfs\.github\.com/spec/"), "git lfs pull"),
    "a git-annex pointer": (re.compile(rb"[\w./\\-]*[/\\]annex[/\\]objects[/\\]"), "git annex get"),
}


def refuse_placeholder(path: Path) -> None:
    r"""Raise a ValueError if a file does not hold what its name says, and say what it is; in a folder, look at all files.

    Empty files in a folder are left to the reader of the folder: they may not belong to the case.

    Raises:
        FileNotFoundError: there is no such file, or it is a link to one that does not exist.
        ValueError: a file is empty, a pointer, a pipe or a device.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "ct.nii.gz"
        >>> _ = path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a...\nsize 12345\n")
        >>> refuse_placeholder(path)
        Traceback (most recent call last):
        ValueError: ...ct.nii.gz: found a git-lfs pointer, expected the file itself: `git lfs pull` fetches it
    """
    if path.is_dir():
        for file in sorted(path.iterdir()):
            if not file.is_dir() and not file.name.startswith("."):
                _refuse_file(file)
        return
    _refuse_file(path)
    if path.stat().st_size == 0:
        raise ValueError(f"{path}: found an empty file, expected an image")


def _refuse_file(path: Path) -> None:
    if not path.exists():
        raise FileNotFoundError(f"{path}: {why_missing(path)}")
    refuse_stream(path)
    if path.stat().st_size > _MAX_POINTER:
        return
    with path.open("rb") as file:
        start = file.read(200)
    for kind, (begins, command) in _POINTERS.items():
        if begins.match(start):
            raise ValueError(f"{path}: found {kind}, expected the file itself: `{command}` fetches it")


def refuse_stream(path: Path) -> None:
    """Raise a ValueError for a pipe or a device: looking into it would consume from it, or wait forever."""
    if is_stream(path):
        raise ValueError(f"{path}: found a pipe or a device, expected a file, which can be read more than once")


def why_missing(path: Path) -> str:
    """Say of a path that does not exist what is there instead, for a message that begins with the path."""
    if not path.is_symlink():
        return "no such file, expected an image"
    target = path.readlink().as_posix()
    if "annex/objects/" in target:
        return "found a link of git-annex without its content, expected the file itself: `git annex get` fetches it"
    return f"found a link to {target}, which does not exist, expected an image"
