"""Write whole files or none: beside the target first, then renamed over it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path beside ``path``; rename it over ``path`` when the block ends without an error.

    A reader sees the old file or the new one, never a half of either, also when the process is killed or the disk fills up.
    The temporary name keeps all suffixes of ``path``, because image writers choose their format by them.

    Args:
        path: the file to write; its folder is made if it is missing.

    Yields:
        the path to write to.

    Example:
        >>> import pathlib, tempfile
        >>> target = pathlib.Path(tempfile.mkdtemp()) / "new_folder" / "note.txt"
        >>> with replacing(target) as beside:
        ...     _ = beside.write_text("whole")
        >>> target.read_text()
        'whole'
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    suffix = "".join(target.suffixes)
    handle, name = tempfile.mkstemp(
        prefix=f".{target.name[: len(target.name) - len(suffix)]}-", suffix=suffix, dir=target.parent
    )
    os.close(handle)
    beside = Path(name)
    try:
        yield beside
        # mkstemp makes files private; an ordinary new file follows the umask
        umask = os.umask(0)
        os.umask(umask)
        beside.chmod(0o666 & ~umask)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write ``text`` as UTF-8 to ``path``, whole or not at all.

    Args:
        path: the file to write; an existing one is replaced.
        text: its new content.
    """
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")
