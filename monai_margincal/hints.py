"""Advice in the words of the tool that was called: ``num_classes=3`` is Python, a command line says ``--num-classes 3``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

__all__ = ["did_you_mean", "in_flags"]

#: what an argument is set to in a message: a list, a text, or a word up to the end of the clause
_VALUE = r"(?P<value>\[[^\]]*\]|'[^']*'|\"[^\"]*\"|[^\s,;:)]+?(?=[,;:)]|\.?(?:\s|\Z)))"

#: what follows a name with which a message begins: other sentences may begin with the same word
_COMPLAINT = r"(?=: found|: expected| is [^:]*: expected| must )"


def in_flags(message: str, flags: Mapping[str, str]) -> str:
    """A message that speaks of arguments of Python functions, in the words of a command line.

    Changed are ``name=value``, ``name`` in backticks, a name with an underscore, and a name that the message begins with. Parts
    of paths are left alone.

    Args:
        message: what a function said, with or without the type of the exception before it.
        flags: argument of the function -> what is typed for it: ``--num-classes``, or ``--set num_classes=``, which takes its
            value without a space.

    Example:
        >>> flags = {"num_classes": "--num-classes", "ids": "--ids"}
        >>> in_flags("a.png: found 255. Declare every label value: num_classes=256 or ids=[0, 255].", flags)
        'a.png: found 255. Declare every label value: --num-classes 256 or --ids 0 255.'
        >>> in_flags("ValueError: num_classes is 0: expected at least 1", flags)
        'ValueError: --num-classes is 0: expected at least 1'
        >>> in_flags("num_classes=2/a.nii: no such file, expected an image", {})
        'num_classes=2/a.nii: no such file, expected an image'
    """
    if not flags:
        return message
    names = "|".join(sorted(map(re.escape, flags), key=len, reverse=True))
    alone = "|".join(sorted((re.escape(name) for name in flags if "_" in name), key=len, reverse=True))

    def assigned(found: re.Match[str]) -> str:
        flag, value = flags[found["name"]], found["value"]
        if flag.endswith("="):
            return flag + value
        return f"{flag} {value[1:-1].replace(',', '') if value.startswith('[') else value}"

    def named(found: re.Match[str]) -> str:
        return flags[found["name"]].rstrip("=")

    message = re.sub(rf"(?<![\w/.\\-])(?:--)?(?P<name>{names})=(?![^\s,;:)/'\"]+/){_VALUE}", assigned, message)
    message = re.sub(rf"`(?P<name>{names})`", named, message)
    message = re.sub(
        rf"\A(?P<kind>[A-Z]\w+: )?(?P<name>{names}){_COMPLAINT}", lambda m: (m["kind"] or "") + named(m), message
    )
    if alone:
        message = re.sub(rf"(?<![\w/.\\'\"=-])(?:--)?(?P<name>{alone})(?![\w/=]|\.\w)", named, message)
    return message


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The known word that a misspelt one resembles, as the end of a message; nothing where none does.

    Example:
        >>> did_you_mean("--num_clases", ["--num-classes", "--names"]), did_you_mean("x", ["--names"])
        (" (did you mean '--num-classes'?)", '')
    """
    close = get_close_matches(word, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
