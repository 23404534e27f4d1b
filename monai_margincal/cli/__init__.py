"""The command line: one module per verb, each with ``add_arguments(parser)`` and ``run(arguments)``.

Exit status: 0 on success, 2 on bad usage, 1 on any other error; one line on stderr then names the file, what was found and what
was expected.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module

from ..errors import root_message
from .console import Console

__all__ = ["main"]

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
}


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of all verbs."""
    from .. import __version__

    parser = argparse.ArgumentParser(
        prog="margincal", description="Distribution-aware margin calibration for medical image segmentation."
    )
    parser.add_argument("--version", action="version", version=f"monai-margincal {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb, (module, summary) in _VERBS.items():
        command = import_module(f".{module}", __name__)
        sub = verbs.add_parser(verb, help=summary, description=command.__doc__, formatter_class=_HelpFormatter)
        command.add_arguments(sub)
        sub.set_defaults(run=command.run)
    return parser


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Shows defaults, and keeps the lines of the module docstring."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb.

    Args:
        argv: the arguments of the command line; default: those of this process.

    Returns:
        the exit status.
    """
    output, errors = Console(sys.stdout), Console(sys.stderr)
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors), _warnings_in_one_line():
        try:
            return _run(argv, output)
        finally:
            output.flush()
            errors.flush()


@contextlib.contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Which line of which module warns is nothing that a user of the command line asks for."""
    before = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"margincal: warning: {message}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before


def _run(argv: Sequence[str] | None, output: Console) -> int:
    try:
        arguments = build_parser().parse_args(argv)
        return _run_verb(arguments, output)
    except KeyboardInterrupt:
        print("margincal: interrupted", file=sys.stderr)
        return 130


def _run_verb(arguments: argparse.Namespace, output: Console) -> int:
    command = f"margincal {arguments.verb}"
    try:
        arguments.run(arguments)
    except Exception as error:
        if arguments.debug:
            raise
        print(f"{command}: {root_message(error)}", file=sys.stderr)
        return 1
    output.flush()
    if output.error is not None:
        # the reader (head, less) may be gone, so there is nobody to write to
        if not isinstance(output.error, BrokenPipeError):
            print(f"{command}: standard output: cannot be written: {output.error.strerror}", file=sys.stderr)
        return 1
    return 0
