"""``python -m monai.bundle``: whether this process is it, and what was typed."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence

#: what `python -m monai.bundle` and `torchrun -m monai.bundle` run as the main program
_COMMAND_LINE = "monai.bundle.__main__"

#: environment variable in which `margincal segment` and `train` say what is typed for a key: a JSON object, key -> option
FLAGS_VARIABLE = "MARGINCAL_FLAGS"

#: how fire, which reads MONAI's command line, tells a flag from a value; -3 is a value
_FLAG = re.compile(r"--|-[a-zA-Z]")


def is_command_line() -> bool:
    """Whether this process is MONAI's command line, and not a host application, a notebook or a server.

    Example:
        >>> is_command_line()
        False
    """
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name == _COMMAND_LINE


def flags_of(keys: Iterable[str]) -> dict[str, str]:
    """What is typed for the keys of a configuration: ``--KEY``; under `margincal train`, its own options and ``--set KEY=``.

    Example:
        >>> flags_of(["epochs"])
        {'epochs': '--epochs'}
    """
    own = os.environ.get(FLAGS_VARIABLE)
    if own is None:
        return {key: f"--{key}" for key in keys}
    options = json.loads(own)
    return {key: options.get(key, f"--set {key}=") for key in keys}


def typed_flags(words: Sequence[str]) -> dict[str, str | None]:
    """The flags of a command line as they were typed, before fire takes their values for Python.

    Args:
        words: the command line, without the program.

    Returns:
        key -> value, or None for a flag without one, such as ``--compile`` or ``--nocompile``; the last of a repeated flag.

    Example:
        >>> typed_flags(["run", "--image_pattern", "{case}", "--cases=007", "--compile"])
        {'image_pattern': '{case}', 'cases': '007', 'compile': None}
    """
    flags: dict[str, str | None] = {}
    left = list(words)
    if "--" in left:  # what follows is for fire itself
        del left[len(left) - 1 - left[::-1].index("--") :]
    while left:
        word = left.pop(0)
        if not _FLAG.match(word):
            continue
        key, equals, value = word.lstrip("-").partition("=")
        key = key.replace("-", "_")
        if equals:
            flags[key] = value
        elif left and not _FLAG.match(left[0]):
            flags[key] = left.pop(0)
        else:
            flags[key.removeprefix("no")] = None
    return flags
