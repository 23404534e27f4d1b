"""The parsers of the command line: what all verbs have in common in their options, their help and their errors."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from ..hints import did_you_mean

#: lines longer than this are hard to read, however wide the terminal is
_WIDEST = 100


class HelpFormatter(argparse.HelpFormatter):
    """Help as wide as the terminal, paragraphs filled, examples and lists as they are, and defaults only where there are some."""

    def __init__(self, prog: str, **options: Any) -> None:
        width = min(shutil.get_terminal_size().columns, _WIDEST) - 2
        super().__init__(prog, **{"max_help_position": 28, "width": width, **options})

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(
            part if "\n  " in f"\n{part}" else super(HelpFormatter, self)._fill_text(part, width, indent)
            for part in text.strip("\n").split("\n\n")
        )

    def _get_help_string(self, action: argparse.Action) -> str | None:
        """Append the default unless it is nothing, or the words say it already."""
        text = action.help or ""
        nothing = action.default is None or action.default is False or action.default in ([], argparse.SUPPRESS)
        return text if nothing or "default" in text or not action.option_strings else f"{text} (default: %(default)s)"


class Parser(argparse.ArgumentParser):
    """A parser whose errors show its own usage and say what was found, what was expected, and what may have been meant."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"formatter_class": HelpFormatter, **options})

    def error(self, message: str) -> NoReturn:
        """Print usage and message, and where there is more to read; exit with 2."""
        self.print_usage(sys.stderr)
        self.exit(2, f"{self.prog}: {message}\nsee: {self.prog} --help\n")

    def refuse(self, words: Sequence[str]) -> NoReturn:
        """Say of words that are left over what they may have been meant for."""
        known = [option for action in self._actions for option in action.option_strings]
        flags = [word.partition("=")[0] for word in words if word.startswith("-")]
        if not flags:
            self.error(f"found {' '.join(words)!r}, expected nothing more")
        self.error("found the unknown option " + ", ".join(f"{flag}{did_you_mean(flag, known)}" for flag in flags))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            listed = ", ".join(map(str, action.choices))
            hint = did_you_mean(str(value), map(str, action.choices))
            raise argparse.ArgumentError(action, f"found {value!r}, expected one of {listed}{hint}")


def common_options() -> Parser:
    """The options that stand before or after any verb; those that are not given are no attributes."""
    parser = Parser(add_help=False, argument_default=argparse.SUPPRESS)
    options = parser.add_argument_group("everywhere")
    options.add_argument("-q", "--quiet", action="store_true", help="only the result, warnings and errors")
    options.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="also the time taken, the libraries' log, and where warnings come from",
    )
    options.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def split_examples(docstring: str | None) -> tuple[str, str]:
    r"""The description and the examples of a verb's docstring: the examples are the indented lines at its end.

    Example:
        >>> split_examples("Count.\n\n  margincal count a.nii.gz\n")
        ('Count.', 'examples:\n  margincal count a.nii.gz')
    """
    text, _, examples = (docstring or "").strip().partition("\n\n  margincal ")
    return text, f"examples:\n  margincal {examples}" if examples else ""


def all_parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser, and those of its verbs and of their verbs."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from all_parsers(child)


def python_names(parser: argparse.ArgumentParser) -> dict[str, str]:
    """What is typed for the arguments of Python functions: an option is stored under the name of the argument that it sets.

    Example:
        >>> parser = Parser(prog="example")
        >>> _ = parser.add_argument("--workers", dest="num_workers")
        >>> python_names(parser)
        {'num_workers': '--workers'}
    """
    return {
        action.dest: max(action.option_strings, key=len).replace("_", "-")
        for action in parser._actions
        if action.option_strings and action.dest not in (argparse.SUPPRESS, "help")
    }
