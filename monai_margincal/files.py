"""Write files completely or not at all: next to the target, then renamed over it; one process at a time where many add to one."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from .streams import is_stream, open_stream, own_descriptor

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]

#: in seconds; a lock is held for as long as one small file takes, so waiting longer than this means that a process hangs
_PATIENCE = 120.0


#: most bytes in the name of the temporary file; file systems allow 255
_LONGEST_NAME = 240


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path next to ``path``; rename it over ``path`` when the block ends without an error.

    A reader sees the old file or the new one, never half of either, even when the process is killed or the disk fills up.
    The temporary name keeps all suffixes of ``path``, because image writers choose their format by them. If ``path`` is a link,
    the file that it points to is replaced. What is not a file (a pipe, a terminal, ``/dev/stdout``, a shell's ``>(...)``) is
    written directly, from a temporary file elsewhere.

    Args:
        path: the file to write; its folder is made if it is missing.

    Yields:
        the path to write to.

    Raises:
        OSError: the file cannot be written (no space, no permission, a folder, a named pipe that nobody reads); the message
            names ``path``.

    Example:
        >>> import pathlib, tempfile
        >>> target = pathlib.Path(tempfile.mkdtemp()) / "new_folder" / "note.txt"
        >>> with replacing(target) as beside:
        ...     _ = beside.write_text("whole")
        >>> target.read_text()
        'whole'
    """
    if is_stream(path):
        with tempfile.TemporaryDirectory() as folder:
            beside = Path(folder, Path(path).name)
            yield beside
            with _naming(path), open_stream(path) as stream, beside.open("rb") as content:
                shutil.copyfileobj(content, stream)
        return
    with _naming(path):
        target = Path(os.path.realpath(path))
        _nearest_folder(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        suffix = "".join(target.suffixes)
        stem = target.name[: len(target.name) - len(suffix)]
        if len(os.fsencode(target.name)) > _LONGEST_NAME - len(".-12345678"):
            stem, suffix = "", target.name[-_LONGEST_NAME // 5 :]
        handle, name = tempfile.mkstemp(prefix=f".{stem}-", suffix=suffix, dir=target.parent)
        os.close(handle)
    beside = Path(name)
    try:
        with _naming(path, beside):
            yield beside
            # mkstemp makes files private; an ordinary new file follows the umask
            umask = os.umask(0)
            os.umask(umask)
            beside.chmod(0o666 & ~umask)
            beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write ``text`` as UTF-8 to ``path``, completely or not at all.

    Args:
        path: the file to write; an existing one is replaced. See `replacing` for what is not a file.
        text: its new content; see `printable` for file names in it.

    Raises:
        OSError: the file cannot be written; the message names it.
    """
    with replacing(path) as beside:
        beside.write_text(printable(text), encoding="utf-8")


def expect_writable(path: str | os.PathLike[str]) -> None:
    """Raise now, before hours of work, what writing to ``path`` would raise afterwards; nothing is left behind.

    Args:
        path: the file that will be written with `replacing`.

    Raises:
        OSError: its folder cannot be made or written, the disk is full, or it is a folder; the message names ``path``.

    Example:
        >>> import pathlib, tempfile
        >>> note = pathlib.Path(tempfile.mkdtemp()) / "note.txt"
        >>> expect_writable(note)
        >>> _ = note.write_text("a file is not a folder")
        >>> expect_writable(note / "counts.json")
        Traceback (most recent call last):
        NotADirectoryError: ...note.txt/counts.json: cannot be written: ...note.txt is a file, expected a folder
    """
    with _naming(path):
        number = own_descriptor(path)
        if number is not None:
            os.fstat(number)
        if is_stream(path):
            return
        target = Path(os.path.realpath(path))
        folder = _nearest_folder(target)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(4096))
            probe.flush()


def printable(text: str) -> str:
    r"""Give a text in which bytes of file names that are not UTF-8 are spelt out, as ``\xe4``; everything else stays as it is.

    Python keeps such a byte in a name so that the file can be opened; no text file, log or page can take it.

    Args:
        text: may hold names of files.

    Example:
        >>> import os
        >>> print(printable(os.fsdecode(b"L\xe4sion.nii.gz")))
        L\xe4sion.nii.gz
    """
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # half a character, which comes from elsewhere
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


@contextlib.contextmanager
def locked(path: str | os.PathLike[str], patience: float = _PATIENCE) -> Iterator[None]:
    """Let one process at a time read ``path``, change it and write it back: others that ask for the same file wait here.

    Without it, each of several processes that add to one file would write back what it has read, without what the others have
    added meanwhile. The lock is the hidden file ``.NAME.lock`` next to ``path``, which is gone afterwards; a process that dies
    leaves it behind, but does not hold it. Must not be nested for one file.

    Args:
        path: the file; its folder is made if it is missing.
        patience: how long to wait, in seconds.

    Raises:
        TimeoutError: others have held the lock for that long.

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> with locked(folder / "table.csv"):
        ...     [path.name for path in folder.iterdir()]
        ['.table.csv.lock']
        >>> list(folder.iterdir())
        []
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    lock = target.with_name(f".{target.name}.lock")
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            hold(handle, target, patience)
            # whoever held it before may have removed it: then others lock another file of that name
            if not _is_open_as(handle, lock):
                continue
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
            return
        finally:
            os.close(handle)


def hold(handle: int, path: str | os.PathLike[str], patience: float = _PATIENCE) -> None:
    """Wait until no other process holds the lock of an open file; it is held until the file is closed.

    On a file system, or an operating system, without locks nothing is held.

    Args:
        handle: the open file's descriptor.
        path: what the lock is for, for the message.
        patience: how long to wait, in seconds.

    Raises:
        TimeoutError: others have held it for that long.
    """
    if fcntl is None:
        return
    give_up = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > give_up:
                raise TimeoutError(
                    f"{path}: found it locked by another process for {patience:.0f} s, expected it to be free at once"
                ) from None
            time.sleep(0.005)
        except OSError:
            return
        else:
            return


def _is_open_as(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _nearest_folder(target: Path) -> Path:
    """The folder of a file to be written or, if that does not exist yet, the folder in which it will be made."""
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "found a folder, expected a file")
    folder = target.parent
    while not os.path.lexists(folder):
        folder = folder.parent
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, f"{folder} is a file, expected a folder")
    return folder


@contextlib.contextmanager
def _naming(path: str | os.PathLike[str], beside: Path | None = None) -> Iterator[None]:
    """Let errors of the operating system name ``path``; if ``beside`` is given, those about any other file pass unchanged."""
    try:
        yield
    except OSError as error:
        if beside is not None and error.filename not in (None, str(beside)):
            raise
        # the constructor knows which number makes which class
        kind = OSError if error.errno is None else type(OSError(error.errno, ""))
        named = kind(f"{Path(path)}: cannot be written: {error.strerror or error}")
        named.errno = error.errno
        raise named from error
