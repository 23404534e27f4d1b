"""The command line: one module per verb, each with ``add_arguments(parser)`` and ``run(arguments)``, which gives an `Answer`.

Exit status: 0 on success, 2 on bad usage, 1 on any other error; one line on stderr then names the file, what was found and what
was expected. 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module

from ..errors import root_message
from ..hints import in_flags
from ..processes import keep_freed_memory
from ..streams import is_standard_output
from .answer import deliver
from .console import Console
from .parsers import Parser, common_options, python_names, split_examples

__all__ = ["build_parser", "main"]

#: verb -> (module, one line of help)
_VERBS = {
    "demo": ("demo", "train and run a lesion segmentation on the shipped CT, from label counts to a saved mask"),
    "segment": ("segment", "segment scans with a shipped bundle"),
    "train": ("train", "train a shipped bundle on a folder of your own"),
    "count": ("count", "count the voxels of every class in label files"),
    "margins": ("margins", "show the margins that follow from class counts"),
    "report": ("report", "write a report on class counts as one HTML file"),
    "figure": ("figure", "draw image, truth and the predictions of several runs side by side"),
    "datalist": ("datalist", "write a MONAI data list for a folder of images and labels"),
    "decide": ("decide", "decide for the IoU by offsets per class: fit, show or bake them"),
    "convert-weights": ("convert_weights", "convert published COPLE-Net weights to this package's layout"),
    "check-bundle": ("check_bundle", "check a MONAI bundle: metadata, keys, names, preprocessing, data"),
    "compare": ("compare", "run a study: tasks x objectives x seeds, resumable"),
    "regret": ("regret", "read several studies together: which recipe is never far from the best"),
    "doctor": ("doctor", "show versions, devices, kernels and image readers"),
    "completion": ("completion", "print what makes a shell complete these commands: bash, zsh or tcsh"),
    "help": ("help", "show the help of a verb"),
}


def build_parser() -> Parser:
    """Build the parser of all verbs."""
    from .. import __version__

    parser = Parser(
        prog="margincal",
        description="Distribution-aware margin calibration for medical image segmentation.",
        epilog="examples:\n  margincal demo\n  margincal count labels/ --num-classes 2\n  margincal help count",
        parents=[common_options()],
    )
    parser.add_argument("--version", action="version", version=f"monai-margincal {__version__}")
    parser.set_defaults(quiet=False, verbose=False, debug=False, runs_networks=False)
    # not the parser's own: their defaults would undo what stands before the verb
    common = common_options()
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB", title="verbs")
    for verb, (module, summary) in _VERBS.items():
        command = import_module(f".{module}", __name__)
        description, examples = split_examples(command.__doc__)
        sub = verbs.add_parser(verb, help=summary, description=description, epilog=examples, parents=[common])
        command.add_arguments(sub)
        sub.set_defaults(run=command.run, parser=sub)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb.

    Args:
        argv: the arguments of the command line; default: those of this process, which then is taken for the verb's own.

    Returns:
        the exit status.
    """
    output, errors = Console(sys.stdout), Console(sys.stderr)
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            words = sys.argv[1:] if argv is None else argv
            return _run(words, output, errors, owns_process=argv is None)
        finally:
            output.flush()
            errors.flush()


def _run(argv: Sequence[str], output: Console, errors: Console, *, owns_process: bool) -> int:
    started = time.monotonic()
    try:
        arguments = _parse(argv)
        if owns_process and arguments.runs_networks:
            keep_freed_memory()
        with _as_loud_as_asked(arguments, errors):
            status = _run_verb(arguments, output)
        if arguments.verbose:
            print(f"{arguments.parser.prog}: {time.monotonic() - started:.1f} s", file=sys.stderr)
        return status
    except KeyboardInterrupt:
        print("margincal: interrupted", file=sys.stderr)
        return 130


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = build_parser()
    if not argv:
        parser.print_help(sys.stderr)
        parser.exit(2)
    arguments, left = parser.parse_known_args(argv)
    if left:
        arguments.parser.refuse(left)
    if arguments.quiet and arguments.verbose:
        arguments.parser.error("found --quiet and --verbose, expected one of the two")
    for name in ("output", "report"):
        value = getattr(arguments, name, None)
        if getattr(arguments, "as_json", False) and isinstance(value, str) and is_standard_output(value):
            arguments.parser.error(f"--{name}: found standard output beside --json, expected a file")
    return arguments


@contextlib.contextmanager
def _as_loud_as_asked(arguments: argparse.Namespace, errors: Console) -> Iterator[None]:
    """Progress and warnings as ``--quiet`` and ``--verbose`` want them; warnings in the words of the command line."""
    flags = python_names(arguments.parser)
    errors.shows_progress = not arguments.quiet
    if arguments.verbose:
        log = logging.StreamHandler(errors)
        log.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        logging.getLogger().addHandler(log)
        try:
            yield
        finally:
            logging.getLogger().removeHandler(log)
        return
    before = warnings.formatwarning
    # which line of which module warns is nothing that a user of the command line asks for
    warnings.formatwarning = lambda message, *_, **__: f"margincal: warning: {in_flags(str(message), flags)}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before


def _run_verb(arguments: argparse.Namespace, output: Console) -> int:
    command = arguments.parser.prog
    try:
        with _prints_beside_the_answer(arguments):
            answer = arguments.run(arguments)
        if answer is not None:
            deliver(answer, arguments)
    except Exception as error:
        if arguments.debug:
            raise
        print(f"{command}: {in_flags(root_message(error), python_names(arguments.parser))}", file=sys.stderr)
        return 1
    output.flush()
    if answer is not None and answer.failed:
        print(f"{command}: {answer.failed}", file=sys.stderr)
        return 1
    if answer is not None and answer.status:
        return int(answer.status)
    if output.error is not None:
        # the reader (head, less) may be gone, so there is nobody to write to
        if not isinstance(output.error, BrokenPipeError):
            print(f"{command}: standard output: cannot be written: {output.error.strerror}", file=sys.stderr)
        return 1
    return 0


@contextlib.contextmanager
def _prints_beside_the_answer(arguments: argparse.Namespace) -> Iterator[None]:
    """What is printed before the answer tells how far the work is: nothing for ``--quiet``, no part of what ``--json`` gives."""
    if arguments.quiet:
        with contextlib.redirect_stdout(Console(None)):
            yield
    elif getattr(arguments, "as_json", False):
        with contextlib.redirect_stdout(sys.stderr):
            yield
    else:
        yield
