"""The short way to a shipped bundle: the verbs `segment` and `train` run `python -m monai.bundle` for the user, and show how."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..bundle.command_line import FLAGS_VARIABLE

DEFAULT_BUNDLE = "covid19_ct_lesion_coplenet"
_STANDARD_ERROR = 2
#: seconds in which a process that was interrupted along with this one ends
_GRACE = 5.0


def add_bundle_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments that every verb of a bundle has."""
    parser.add_argument(
        "--bundle",
        default=DEFAULT_BUNDLE,
        metavar="NAME",
        help="a shipped bundle, or the folder of one",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any other key of the bundle, for example epochs=50; may be repeated",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the command and stop")


def bundle_root(name: str) -> Path:
    """The folder of a shipped bundle, or of the user's own.

    Raises:
        ValueError: there is neither; the message names the bundles that are shipped.
    """
    from ..bundle import bundle_dir

    folder = Path(name).expanduser()
    return folder.absolute() if (folder / "configs").is_dir() else Path(bundle_dir(name))


def key_and_value(text: str, argument: str) -> tuple[str, str]:
    """Split ``KEY=VALUE``; dashes before the key, as on MONAI's command line, are left away.

    Raises:
        ValueError: the text has another form; the message names the argument that it came with.

    Example:
        >>> key_and_value("--loss#tau=2", "--set")
        ('loss#tau', '2')
    """
    key, equals, value = text.lstrip("-").partition("=")
    if not equals or not key:
        raise ValueError(f"{argument}: found {text!r}, expected KEY=VALUE")
    return key, value


def run_bundle(
    arguments: argparse.Namespace,
    root: Path,
    configs: Sequence[str],
    keys: Mapping[str, str],
    flags: Mapping[str, str],
) -> tuple[str, int]:
    """Run configurations of a bundle in a process of their own, whose output and errors are those of MONAI's command line.

    Args:
        arguments: those of `add_bundle_arguments`, and what all verbs have.
        root: the bundle's folder.
        configs: files in its folder ``configs``.
        keys: the verb's own keys, as on MONAI's command line.
        flags: key -> option of the verb that sets it, for the advice in error messages; all others come by ``--set``.

    Returns:
        the command, and its exit status; 0 where it was only to be shown.

    Raises:
        ValueError: a setting has another form, or is a key that the verb sets itself.
    """
    settings = {"bundle_root": str(root), **keys}
    for setting in arguments.set:
        key, value = key_and_value(setting, "--set")
        if key in settings:
            raise ValueError(f"--set: found {setting!r}, expected a key that no other argument sets")
        settings[key] = value
    files = [str(root / "configs" / config) for config in configs]
    words = ["-m", "monai.bundle", "run", "--config_file", files[0] if len(files) == 1 else repr(files)]
    words += [word for key, value in settings.items() for word in (f"--{key}", value)]
    command = f"python {shlex.join(words)}"
    if arguments.dry_run:
        return command, 0
    print(command, flush=True)
    environment = {**os.environ, "PYTHONSAFEPATH": "1", FLAGS_VARIABLE: json.dumps(dict(flags))}
    log = subprocess.DEVNULL if arguments.quiet else _STANDARD_ERROR if arguments.as_json else None
    status = _wait(subprocess.Popen([sys.executable, *words], env=environment, stdout=log))
    return command, 128 - status if status < 0 else status


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process that gets Ctrl-C from the terminal as well: it says what there is to say and ends by itself."""
    try:
        return process.wait()
    except KeyboardInterrupt:
        try:
            return process.wait(_GRACE)
        except subprocess.TimeoutExpired:  # the interrupt came from elsewhere than the terminal
            process.send_signal(signal.SIGINT)
            return process.wait()
