"""Printing that loses no work: what the terminal cannot show is written in another way, and a reader that left is not an end."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from ..streams import is_standard_output


class Console:
    r"""A text stream to print to, in place of standard output or standard error.

    Characters that the stream's encoding has no code for become ``\\xf6`` or ``\\u03c1``. Once it cannot be written any more (the
    reader has closed the pipe, the disk is full) everything else is dropped and ``error`` says why; who prints goes on.

    Args:
        stream: where to print; None, as Python has it where a shell closed the stream, drops everything.

    Example:
        >>> import io
        >>> plain = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        >>> print("Läsion", file=Console(plain), flush=True)
        >>> plain.buffer.getvalue()
        b'L\\xe4sion\n'
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.error: OSError | None = None
        #: progress bars are shown in terminals only, so a console that shows none says that it is no terminal
        self.shows_progress = True

    def isatty(self) -> bool:
        """Whether progress is shown here."""
        return self.shows_progress and self.stream is not None and self.stream.isatty()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write what can be written."""
        if self.stream is not None and self.error is None:
            with self._kept():
                try:
                    self.stream.write(text)
                except UnicodeEncodeError:
                    encoding = self.stream.encoding or "ascii"
                    self.stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def flush(self) -> None:
        """Send on what was written."""
        if self.stream is not None and self.error is None:
            with self._kept():
                self.stream.flush()

    @contextlib.contextmanager
    def _kept(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.error = error
            # the interpreter flushes once more at its end, and would complain
            with contextlib.suppress(OSError, ValueError, AttributeError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self.stream.fileno())
                os.close(nowhere)


@contextlib.contextmanager
def printing_beside(*outputs: str | None) -> Iterator[None]:
    """Print to standard error where one of the files to write is standard output, so that it holds that file alone.

    Args:
        outputs: the files that the command writes; None for one that was not asked for.
    """
    if any(output is not None and is_standard_output(output) for output in outputs):
        with contextlib.redirect_stdout(sys.stderr):
            yield
    else:
        yield
