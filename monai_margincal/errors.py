"""Errors in one line: what went wrong, in which file, without what MONAI and PyTorch wrap around it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from .files import printable

#: how MONAI says where in a configuration or a chain of transforms something failed; the cause says what failed
_WRAPPERS = re.compile(r"Failed to (evaluate|instantiate component) |applying transform |['\"]?query key: ")

#: how PyTorch passes on what was raised in a worker process: with the whole traceback as the message
_FROM_WORKER = re.compile(r"Caught \w+ in .*?\.\nOriginal (?=Traceback)", re.DOTALL)

#: between the parts of a printed chain of exceptions, the first cause first
_NEXT_IN_CHAIN = re.compile(
    r"\n\n(?:The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred):\n\n"
)
#: after the stack, which is indented: type and message, which may have further lines
_RAISED = re.compile(r"^([A-Za-z_][\w.]*)(?:: (.*))?\Z", re.DOTALL | re.MULTILINE)

#: Python errors that say what happened, but not to which setting
_BARE = {"AssertionError", "AttributeError", "IndexError", "KeyError", "NameError", "TypeError", "ZeroDivisionError"}

#: what MONAI was about to do: evaluate an expression, instantiate a class or call a function
_AT = re.compile(r"Failed to (?:evaluate ConfigExpression:\s*\"(.*)\"|instantiate component '(.*?)')", re.DOTALL)
_LOCAL_REFERENCE = re.compile(r"__local_refs\['(.*?)'\]")

#: advice and inner tracebacks that MONAI's choice of a reader appends to its message
_ADVICE = re.compile(r"\s+Please install the reader libraries.*", re.DOTALL)

#: longer messages are cut: one about a state dict that does not fit lists every tensor
_LONGEST = 700


class CaseError(RuntimeError):
    """A case that cannot be used; the message is one line that says everything, so it is shown without its type."""


def root_cause(error: BaseException) -> tuple[str, str]:
    """Give the type and the message of what started an error.

    In a chain of exceptions, that is the outermost one that is none of MONAI's wrappers ("Failed to evaluate ConfigExpression",
    "Failed to instantiate component", "applying transform"), even where the chain comes out of a worker process as text.
    For errors that Python itself raises, such as a `KeyError`, the item of the configuration is appended.

    Args:
        error: the exception as it was caught.

    Returns:
        the type's name and the message, which may be empty: at most 700 characters, without line breaks.

    Example:
        >>> root_cause(KeyError("epochs"))
        ('KeyError', "'epochs'")
    """
    chain = list(_chain(error))
    depth = next((depth for depth, (_, text) in enumerate(chain) if not _WRAPPERS.match(text)), len(chain) - 1)
    kind, text = chain[depth]
    place = _AT.match(chain[depth - 1][1]) if depth and kind in _BARE else None
    if place is not None:
        text += " in " + (place[2] or _LOCAL_REFERENCE.sub(r"@\1", place[1]))
    text = printable(" ".join(_ADVICE.sub("", text).split()))
    return kind, text if len(text) <= _LONGEST else text[: _LONGEST - 4] + " ..."


def root_message(error: BaseException) -> str:
    """Say on one line what started an error, see `root_cause`.

    Args:
        error: the exception as it was caught.

    Returns:
        ``"Type: message"``, without the type for a `CaseError`.

    Example:
        >>> try:
        ...     try:
        ...         raise ValueError("epochs must be positive, found 0")
        ...     except ValueError as cause:
        ...         raise RuntimeError("Failed to evaluate ConfigExpression: '$f()'") from cause
        ... except RuntimeError as error:
        ...     print(root_message(error))
        ValueError: epochs must be positive, found 0
    """
    kind, text = root_cause(error)
    if kind == CaseError.__name__ and text:
        return text
    return f"{kind}: {text}" if text else kind


@contextlib.contextmanager
def naming_files(
    files: Any, failed: str = "cannot be read or prepared", *, raises: type[Exception] = CaseError
) -> Iterator[None]:
    """Make whatever is raised inside say in one line which file it is about.

    A message that begins with the file is left as it is. With several files it is enough that the message names one: it knows
    better which of them is at fault. Any other message gets the files put in front of it.

    Args:
        files: a path, or what stands for one in messages, such as ``"item 7"``; or a case of a data list, of which those values
            count that are existing files or folders.
        failed: what went wrong with the files.
        raises: the type of the error. With `ValueError` a file that is missing is a `FileNotFoundError`.

    Raises:
        CaseError, or ``raises``: something was raised inside. An error of that type whose message begins with the file, and
            every `CaseError`, passes unchanged.

    Example:
        >>> with naming_files({"image": "/"}):
        ...     raise ValueError("no voxels")
        Traceback (most recent call last):
        monai_margincal.errors.CaseError: /: cannot be read or prepared: ValueError: no voxels
        >>> with naming_files("a.nii", "cannot be read", raises=ValueError):
        ...     raise EOFError("the file ended early")
        Traceback (most recent call last):
        ValueError: a.nii: cannot be read: EOFError: the file ended early
    """
    try:
        yield
    except CaseError:
        raise
    except Exception as error:  # readers of damaged files and transforms may raise anything
        names = _names(files)
        if isinstance(error, raises) and names and str(error).startswith(names):
            raise
        kind, text = root_cause(error)
        message = root_message(error)
        if names and text.startswith(names):
            message = text
        elif names and not (len(names) > 1 and any(name in text for name in names)):
            message = f"{', '.join(names)}: {failed}: {message}"
        missing = raises is ValueError and kind == FileNotFoundError.__name__
        raise (FileNotFoundError if missing else raises)(message) from error


def some_of(names: Iterable[str], at_most: int) -> str:
    """A list of names that stays readable when there are hundreds.

    Example:
        >>> some_of(["a", "b", "c", "d"], at_most=2)
        'a, b and 2 more'
    """
    listed = list(names)
    rest = len(listed) - at_most
    return ", ".join(listed[:at_most]) + (f" and {rest} more" if rest > 0 else "")


def _names(files: Any) -> tuple[str, ...]:
    if isinstance(files, str | PathLike):
        return (str(files),)
    values = files.values() if isinstance(files, Mapping) else ()
    return tuple(str(value) for value in values if isinstance(value, str | PathLike) and Path(value).exists())


def _chain(error: BaseException) -> Iterator[tuple[str, str]]:
    """Type and message of an exception and of its causes, the outermost first."""
    following: BaseException | None = error
    while following is not None:
        text = str(following)
        begin = _FROM_WORKER.match(text)
        if begin is not None:
            printed = [_RAISED.search(part.rstrip()) for part in _NEXT_IN_CHAIN.split(text[begin.end() :])]
            yield from ((found[1].rsplit(".", 1)[-1], found[2] or "") for found in reversed(printed) if found)
            return
        yield type(following).__name__, text
        following = following.__cause__ or (None if following.__suppress_context__ else following.__context__)
