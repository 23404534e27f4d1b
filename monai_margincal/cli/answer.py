"""What a verb found out, said to a person or to a program."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .console import printing_beside


@dataclass(frozen=True)
class Answer:
    """The result of a verb, which is printed when all its files are written: what cannot be printed is not lost.

    Attributes:
        text: what ``margincal VERB`` prints.
        data: what ``margincal VERB --json`` prints instead, in JSON types; numbers that are not finite become null.
        notes: lines beside the result; ``--quiet`` leaves them away.
        written: files that the verb has written, each a note and an entry of ``written`` in the data.
        failed: why the exit status is 1 although there is a result, in one line; empty if it is not.
        status: the exit status, where something else has said why.
    """

    text: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    written: Sequence[Any] = ()
    failed: str = ""
    status: int = 0


def add_json_argument(parser: argparse.ArgumentParser, keys: Mapping[str, str]) -> None:
    """The option ``--json`` of a verb that prints numbers.

    Args:
        parser: of the verb.
        keys: key of the JSON object -> what it holds: a promise to programs, shown in the reference and tested.
    """
    parser.add_argument(
        "--json",
        action="store_true",
        dest="as_json",
        help="print one JSON object and nothing else, with the keys " + ", ".join([*keys, "written"]),
    )
    parser.set_defaults(json_keys=dict(keys))


def deliver(answer: Answer, arguments: argparse.Namespace) -> None:
    """Print an answer: the result and the notes on standard output; with ``--json`` the object there and the notes beside it.

    Where one of the written files is standard output, everything else goes to standard error.
    """
    files = [str(path) for path in answer.written]
    notes = [*answer.notes, *(f"written: {file}" for file in files)]
    as_json, is_quiet = getattr(arguments, "as_json", False), getattr(arguments, "quiet", False)
    if as_json:
        print(json.dumps(_finite({**answer.data, "written": files}), indent=1, ensure_ascii=False, allow_nan=False))
        _print_all([] if is_quiet else notes, sys.stderr)
    else:
        with printing_beside(*files):
            _print_all([answer.text] if answer.text else [], sys.stdout)
            _print_all([] if is_quiet else notes, sys.stdout)


def _print_all(lines: Iterable[str], stream: Any) -> None:
    for line in lines:
        print(line, file=stream)


def _finite(value: Any) -> Any:
    """The value without NaN and infinity, which JSON has no words for."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(part) for key, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value
