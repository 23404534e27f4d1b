"""The short way to a shipped bundle: the verbs `segment` and `train` run `python -m monai.bundle` for the user, and show how."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

DEFAULT_BUNDLE = "covid19_ct_lesion_coplenet"


def add_bundle_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments that every verb of a bundle has."""
    parser.add_argument(
        "--bundle",
        default=DEFAULT_BUNDLE,
        metavar="NAME",
        help="a shipped bundle, or the folder of one (default: %(default)s)",
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
    root: Path, configs: Sequence[str], keys: Mapping[str, str], settings: Sequence[str], *, is_dry: bool = False
) -> None:
    """Run configurations of a bundle in a process of their own, whose output and errors are those of MONAI's command line.

    Args:
        root: the bundle's folder.
        configs: files in its folder ``configs``.
        keys: the verb's own keys, as on MONAI's command line.
        settings: ``KEY=VALUE`` of the user's.
        is_dry: only print the command.

    Raises:
        ValueError: a setting has another form, or is a key that the verb sets itself.
        SystemExit: the run failed; with its status.
    """
    flags = {"bundle_root": str(root), **keys}
    for setting in settings:
        key, value = key_and_value(setting, "--set")
        if key in flags:
            raise ValueError(f"--set: found {setting!r}, expected a key that no other argument sets")
        flags[key] = value
    files = [str(root / "configs" / config) for config in configs]
    words = ["-m", "monai.bundle", "run", "--config_file", files[0] if len(files) == 1 else repr(files)]
    words += [word for key, value in flags.items() for word in (f"--{key}", value)]
    print("python", shlex.join(words), flush=True)
    if is_dry:
        return
    status = _wait(subprocess.Popen([sys.executable, *words], env={**os.environ, "PYTHONSAFEPATH": "1"}))
    if status:
        raise SystemExit(128 - status if status < 0 else status)


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process that gets Ctrl-C from the terminal as well: it says what there is to say and ends by itself."""
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)  # where the interrupt came from elsewhere than the terminal
        return process.wait()
