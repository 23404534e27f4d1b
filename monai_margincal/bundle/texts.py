"""Flags that hold text: paths, patterns and case names mean what was typed, whatever Python or MONAI would make of them.

On MONAI's command line fire reads a value as Python: ``{case}`` is a set, ``2025`` a number, ``exp#1`` is ``exp`` with a comment.
MONAI drops None, and reads ``#`` in any text as a step into a group. What begins with ``$``, ``@`` or ``%`` is MONAI's own, an
expression, a reference or a macro, and stays so.
"""

from __future__ import annotations

import ast
import io
import os
import re
import tokenize
from collections.abc import Mapping
from typing import Any, Literal

from monai.bundle import ConfigParser

from ..errors import root_message

#: keys of a file or a folder, by the last part of their ids
_PATHS = {
    "bundle_root", "ckpt_dir", "output_dir", "dataset_dir", "datalist_file", "checkpoint", "decision", "resume_from",
    "trt_file", "load_path", "root", "file",
}  # fmt: skip
_PATTERNS = {"image_pattern", "label_pattern"}
#: of texts of any other kind
_WORDS = {"postfix", "image_name", "algorithm", "content_label", "group_column", "group_pattern"}
#: the key of a table of groups; deeper down that word may be a number, as in a norm
GROUPS = "groups"
#: keys of names of cases
CASES = {"cases", "train_cases", "val_cases"}

#: arguments of `monai.bundle.run` itself, which are not part of the configuration
_OF_RUN = {
    "args_file", "config_file", "final_id", "init_id", "logging_file", "meta_file", "properties_path", "run_id", "tracking",
    "workflow", "workflow_name", "workflow_type",
}  # fmt: skip

_EXPECTED = {
    "path": "a path (with ./ before it where a file has that name)",
    "pattern": "a relative path with {case} in it (with ./ before it where it begins with one of $, @ and %)",
    "word": "a text",
    "cases": "names of cases (with [' before and '] behind it where a case has that name)",
}

_QUOTED = re.compile(r"""(['"])(.*)\1""", re.DOTALL)
_NAME = re.compile(r"""\s*(?:(['"])(?P<quoted>.*?)\1|(?P<plain>[^,]*?))\s*(?:,|$)""")
#: a share of the cases: with a point or an exponent, since a whole number is as good a name as any
_SHARE = re.compile(r"\d*\.\d+|\d+\.\d*|\d+(?:\.\d*)?[eE][+-]?\d+")


def kind_of(id: str) -> Literal["path", "pattern", "word", "cases"] | None:
    """What kind of text a key holds; None if it holds none.

    Example:
        >>> kind_of("output_dir"), kind_of("saving#volumes#file"), kind_of("epochs")
        ('path', 'path', None)
    """
    last = re.split("#|::", id)[-1]
    if id in CASES:
        return "cases"
    if id == GROUPS:
        return "path"
    return "path" if last in _PATHS else "pattern" if last in _PATTERNS else "word" if last in _WORDS else None


def read_flag(id: str, typed: str | None, optional: bool = False) -> Any:
    """Read the value of a flag whose key holds a text.

    Args:
        id: the key; `kind_of` knows its kind.
        typed: the value as the shell handed it over; None if there was none.
        optional: whether ``None`` is allowed and means "no value".

    Returns:
        the text, with ``~`` replaced in a path; for names of cases one name, a list of names or a share; None.

    Raises:
        ValueError: there is no value or an empty one, or ``None`` where a value is needed; the message names the flag.

    Example:
        >>> read_flag("output_dir", "exp#1/out"), read_flag("image_pattern", "{case}"), read_flag("cases", "[007,'a,b']")
        ('exp#1/out', '{case}', ['007', 'a,b'])
        >>> read_flag("dataset_dir", "None")
        Traceback (most recent call last):
        ValueError: --dataset_dir: found None, expected a path (with ./ before it where a file has that name)
    """
    kind = kind_of(id) or "word"
    if typed is None or not typed.strip():
        found = "no value" if typed is None else repr(typed)
        raise ValueError(f"--{id}: found {found}, expected {_EXPECTED[kind]}")
    if typed == "None":
        if optional or kind == "cases":
            return None
        raise ValueError(f"--{id}: found None, expected {_EXPECTED[kind]}")
    if is_of_monai(typed):
        return typed
    if kind == "cases":
        return _cases(typed)
    quoted = _QUOTED.fullmatch(typed)
    text = quoted[2] if quoted else typed
    return os.path.expanduser(text) if kind == "path" else text  # noqa: PTH111 - Path would also change the rest


def is_of_monai(text: str) -> bool:
    """Whether a text is an expression, a reference or a macro to MONAI."""
    return text.startswith(("$", "%")) or re.fullmatch(r"@[\w:#]*", text) is not None


def _cases(typed: str) -> str | float | list[str]:
    text = typed.strip()
    if _SHARE.fullmatch(text):
        return float(text)
    bracketed = text[0] + text[-1] in ("[]", "()")
    inner = text[1:-1] if bracketed else text
    found = [match for match in _NAME.finditer(inner) if match.end() > match.start()]
    names = [match["quoted"] if match["quoted"] is not None else match["plain"] for match in found]
    return names if bracketed or len(names) != 1 or found[0]["quoted"] is not None else names[0]


def settle_flags(parser: ConfigParser, flags: Mapping[str, str | None]) -> None:
    """Put what was typed into a configuration that is being resolved, in place of what fire and MONAI made of it.

    Args:
        parser: the parser at work; none of the keys has been resolved yet.
        flags: as `monai_margincal.bundle.command_line.typed_flags` gives them.

    Raises:
        ValueError: a flag cannot mean what was typed; the message names it.
    """
    for id, typed in flags.items():
        if id in _OF_RUN:
            continue
        if kind_of(id) is None:
            _check_other(id, typed)
            if typed == "None":
                _put(parser, id, None)
            continue
        value = read_flag(id, typed, optional=parser.get(id) is None)
        if isinstance(value, str) and is_of_monai(value):
            _check_resolved(parser, id, value)
        else:
            _put(parser, id, value)


def keep_literal(parser: ConfigParser, texts: Mapping[str, Any]) -> None:
    """Keep the paths, patterns and names of a configuration as they are written: ``#`` is no step into a group, ``~`` is home.

    MONAI's parser replaces every ``#`` in a text as it parses; only a caller that still has the text can restore it.

    Args:
        parser: a parser that has parsed its configuration; values that are already resolved stay as they are.
        texts: id -> value; values of any other kind, and those that are MONAI's own, are left alone.

    Example:
        >>> parser = ConfigParser({"output_dir": "exp#1", "file": "$@output_dir + '/a'"})
        >>> parser.parse()
        >>> keep_literal(parser, {"output_dir": "exp#1"})
        >>> parser.get_parsed_content("file")
        'exp#1/a'
    """
    resolved = parser.ref_resolver.resolved_content
    for id, value in texts.items():
        kind = kind_of(id)
        if kind is not None and isinstance(value, str) and not is_of_monai(value):
            resolved.setdefault(id, os.path.expanduser(value) if kind == "path" else value)  # noqa: PTH111


def _put(parser: ConfigParser, id: str, value: Any) -> None:
    above, _, last = id.replace("#", "::").rpartition("::")
    resolved = parser.ref_resolver.resolved_content
    if id in resolved and resolved[id] != value:
        raise ValueError(f"--{id}: found {value!r}, expected a value")
    if above and isinstance(value, str) and "#" in value:
        raise ValueError(f"--{id}: found {value!r}, expected a text without # behind a key with one")
    holder = parser.get(above)
    if not isinstance(holder, dict | list):
        raise ValueError(f"--{id}: found no {above!r} in the configuration, expected a key of it")
    if isinstance(holder, dict):
        holder[last] = value
    else:
        holder[int(last)] = value
    if not above:
        # as if it had been resolved already: MONAI would go on to read # and @ in the text
        resolved[id] = value


def _check_resolved(parser: ConfigParser, id: str, typed: str) -> None:
    """Resolve an expression or a reference now, while it is known which flag it came from."""
    kind = kind_of(id) or "word"
    if typed.startswith("%"):
        return  # resolved before anything of ours is called
    what = "an expression" if typed.startswith("$") else "a reference"
    try:
        found = parser.ref_resolver.get_resolved_content(id.replace("#", "::"))
    except Exception as error:  # an expression can raise anything
        message = f"--{id}: found {typed!r}, {what} for MONAI ({root_message(error)}), expected {_EXPECTED[kind]}"
        raise ValueError(message) from error
    if kind != "cases" and not isinstance(found, str | os.PathLike | None):
        raise ValueError(f"--{id}: found {typed!r}, which is {found!r} for MONAI, expected {_EXPECTED[kind]}")


def _check_other(id: str, typed: str | None) -> None:
    """Refuse a # in a value other than a path, pattern or name: fire cuts it off, or MONAI takes it for a step into a group."""
    if typed is None or "#" not in typed or is_of_monai(typed):
        return
    try:
        tree = ast.parse(typed, mode="eval")
        tokens = list(tokenize.generate_tokens(io.StringIO(typed).readline))
    except (SyntaxError, tokenize.TokenError):
        kept = False  # one text for fire as well
    else:
        texts = [
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        commented = any(token.type == tokenize.COMMENT for token in tokens)
        kept = not commented and all("#" not in text or is_of_monai(text) for text in texts)
    if not kept:
        raise ValueError(f"--{id}: found {typed!r}, expected a value without #, which MONAI does not keep")
