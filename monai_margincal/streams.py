"""Pipes, devices and open files that have a name: what is written or read straight, once, and never replaced."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import time
from pathlib import Path
from typing import IO

#: names of files that this process has open: what lies behind may be a file, but under that name it cannot be replaced
_OPEN_FILE = re.compile(r"/dev/(?:(stdin|stdout|stderr)|fd/(\d+))|/proc/(?:self|thread-self)/fd/(\d+)")
_STANDARD = {"stdin": 0, "stdout": 1, "stderr": 2}
#: seconds for which a reader of a named pipe is waited for
_WAIT_FOR_READER = 10.0


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a pipe, a device or the name of an open file: something that is written or read straight, once.

    Example:
        >>> is_stream("/dev/stdout"), is_stream("/dev/null"), is_stream("counts.json")
        (True, True, False)
    """
    if own_descriptor(path) is not None:
        return True
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def is_standard_output(path: str | os.PathLike[str]) -> bool:
    """Whether what is written to ``path`` comes out where this process prints."""
    if own_descriptor(path) == 1:
        return True
    try:
        return is_stream(path) and os.path.samestat(Path(path).stat(), os.fstat(1))
    except OSError:
        return False


def own_descriptor(path: str | os.PathLike[str]) -> int | None:
    """The number of the open file that a path names, also through links; None for every other path."""
    place = Path(path).absolute()
    for _ in range(40):  # as many links as Linux follows
        found = _OPEN_FILE.fullmatch(os.path.normpath(place))
        if found is not None:
            return _STANDARD[found[1]] if found[1] else int(found[2] or found[3])
        try:
            place = place.parent / place.readlink()
        except (OSError, ValueError):
            return None
    return None


def open_stream(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a stream to write to; one that this process has open goes on where it is.

    Raises:
        OSError: it cannot be opened, or it is a named pipe that nobody has read for ten seconds.
    """
    number = own_descriptor(path)
    if number is not None:
        # a copy goes on where the other one is; what is opened anew would begin at the start of a file
        if number == 1 and sys.stdout is not None:
            sys.stdout.flush()
        return os.fdopen(os.dup(number), "wb")
    if not stat.S_ISFIFO(Path(path).stat().st_mode):
        return Path(path).open("wb")
    deadline = time.monotonic() + _WAIT_FOR_READER
    while True:
        try:
            handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > deadline:
                raise OSError(errno.ENXIO, f"nobody reads this pipe, waited {_WAIT_FOR_READER:g} s") from error
            time.sleep(0.05)
        else:
            os.set_blocking(handle, True)
            return os.fdopen(handle, "wb")
