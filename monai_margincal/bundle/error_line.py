"""The one line with which a failed `python -m monai.bundle run` ends."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from types import TracebackType

from ..errors import root_message
from ..hints import in_flags
from ..processes.interrupts import advice_when_interrupted, raise_interrupts_once
from .command_line import is_command_line

#: what a shell reports of a program that Ctrl-C has ended
_INTERRUPTED = 130


def errors_in_one_line(flags: Mapping[str, str] | None = None) -> None:
    """Let ``python -m monai.bundle`` end with ``error: MESSAGE`` instead of a traceback; for a bundle's ``initialize``.

    MONAI buries the cause under errors about its own expressions. With ``"initialize": [{"_target_":
    "monai_margincal.bundle.errors_in_one_line"}, ...]`` the last line on stderr is the cause, see
    `monai_margincal.errors.root_message`; under ``torchrun`` PyTorch puts the rank before it. The exit code stays 1.
    With the environment variable ``MONAI_DEBUG=1`` the traceback is printed.

    Ctrl-C ends it with one line as well, ``interrupted``, with how to resume a training, and with exit code 130. Worker
    processes, which a terminal interrupts too, keep still. A second Ctrl-C ends everything at once.

    It does nothing in any other program: a host application, a notebook or a server that loads the bundle behaves as ever.

    Args:
        flags: key of the configuration -> what is typed for it, for messages that name a key; it may be filled later.

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
        if not isinstance(error, Exception | KeyboardInterrupt):
            before(kind, error, trace)
            return
        # the log usually goes to stdout, which is buffered: the line must come after it
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        if isinstance(error, KeyboardInterrupt):
            said = f"interrupted {advice_when_interrupted()}".strip()
            print(in_flags(said, flags or {}), file=sys.stderr, flush=True)
            raise SystemExit(_INTERRUPTED)
        print(f"error: {in_flags(root_message(error), flags or {})}", file=sys.stderr, flush=True)

    sys.excepthook = last_line
    raise_interrupts_once()
