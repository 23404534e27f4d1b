"""The one line with which a failed `python -m monai.bundle run` ends."""

from __future__ import annotations

import contextlib
import sys
from types import TracebackType

from ..errors import root_message
from .command_line import is_command_line


def errors_in_one_line() -> None:
    """Let ``python -m monai.bundle`` end with ``error: MESSAGE`` instead of a traceback; for a bundle's ``initialize``.

    MONAI buries the cause under errors about its own expressions. With ``"initialize": [{"_target_":
    "monai_margincal.bundle.errors_in_one_line"}, ...]`` the last line on stderr is the cause, see
    `monai_margincal.errors.root_message`; under ``torchrun`` PyTorch puts the rank before it. The exit code stays 1.
    With the environment variable ``MONAI_DEBUG=1`` the traceback is printed. An interrupt ends the program as it always does.

    It does nothing in any other program: a host application, a notebook or a server that loads the bundle behaves as ever.

    Example:
        >>> hook = sys.excepthook
        >>> errors_in_one_line()
        >>> sys.excepthook is hook  # this is not MONAI's command line
        True
    """
    from monai.utils import MONAIEnvVars

    if not is_command_line() or MONAIEnvVars.debug():
        return
    before = sys.excepthook

    def last_line(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not isinstance(error, Exception):
            before(kind, error, trace)
            return
        # the log usually goes to stdout, which is buffered: the line must come after it
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        print(f"error: {root_message(error)}", file=sys.stderr, flush=True)

    sys.excepthook = last_line
