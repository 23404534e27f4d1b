"""The text of a chain of errors."""

from __future__ import annotations


def causes(error: BaseException | None) -> str:
    """The messages of an error and of all that led to it, one per line, as a traceback shows them."""
    messages = []
    while error is not None:
        messages.append(str(error))
        error = error.__cause__ or error.__context__
    return "\n".join(messages)
