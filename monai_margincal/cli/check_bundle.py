"""Check a MONAI bundle without running it: metadata, properties, names, keys, network, preprocessing, and the data if given.

One line per finding: severity, file, what was found, what was expected. The exit status is 1 if one of them is an error.
"""

from __future__ import annotations

import argparse
from typing import Any

from ..extras import require
from .bundle_command import key_and_value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("bundle", metavar="DIR", help="the bundle's folder, the one that holds configs/")
    parser.add_argument("--dataset-dir", "--dataset_dir", help="check the data too: pairs, grids, label values")
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a key, as it would be given to `python -m monai.bundle run`; may be repeated",
    )


def run(arguments: argparse.Namespace) -> None:
    """Print the findings."""
    from ..bundle.check import check_bundle
    from ..errors import CaseError
    from ..findings import in_numbers

    overrides = dict(_override(text) for text in arguments.override)
    findings = check_bundle(arguments.bundle, overrides, arguments.dataset_dir)
    for finding in findings:
        print(finding)
    summary = in_numbers(findings)
    if any(finding.severity == "error" for finding in findings):
        raise CaseError(f"{arguments.bundle}: found {summary}, expected no error")
    print(f"{arguments.bundle}: {summary}")


def _override(text: str) -> tuple[str, Any]:
    """Split KEY=VALUE and read the value as a run of the bundle does."""
    from ..bundle.texts import kind_of, read_flag

    parser = require("fire.parser", extra="check", purpose="--override")
    key, value = key_and_value(text, "--override")
    if kind_of(key) is not None:
        return key, read_flag(key, value, optional=True)
    return key, parser.DefaultParseValue(value)
