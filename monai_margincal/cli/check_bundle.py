"""Check a MONAI bundle without running it: metadata, properties, names, keys, network, preprocessing, and the data if given.

One line per finding: severity, file, what was found, what was expected. The exit status is 1 if one of them is an error.

  margincal check-bundle my_bundle
  margincal check-bundle my_bundle --dataset-dir data --override epochs=50
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

from ..extras import require
from .answer import Answer, add_json_argument
from .bundle_command import key_and_value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("bundle", metavar="DIR", help="the bundle's folder, the one that holds configs/")
    parser.add_argument(
        "--dataset-dir", "--dataset_dir", metavar="DIR", help="check the data too: pairs, grids, label values"
    )
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a key, as it would be given to `python -m monai.bundle run`; may be repeated",
    )
    add_json_argument(
        parser,
        {
            "findings": "a list of severity, kind, message and files",
            "errors": "how many",
            "warnings": "how many",
            "infos": "how many",
        },
    )


def run(arguments: argparse.Namespace) -> Answer:
    """The findings."""
    from ..bundle.check import check_bundle
    from ..findings import SEVERITIES, in_numbers

    overrides = dict(_override(text) for text in arguments.override)
    findings = check_bundle(arguments.bundle, overrides, arguments.dataset_dir)
    numbers = Counter(finding.severity for finding in findings)
    summary = in_numbers(findings)
    lines = [str(finding) for finding in findings]
    return Answer(
        "\n".join(lines if numbers["error"] else [*lines, f"{arguments.bundle}: {summary}"]),
        {
            "findings": [finding.to_dict() for finding in findings],
            **{f"{severity}s": numbers[severity] for severity in SEVERITIES},
        },
        failed=f"{arguments.bundle}: found {summary}, expected no error" if numbers["error"] else "",
    )


def _override(text: str) -> tuple[str, Any]:
    """Split KEY=VALUE and read the value as a run of the bundle does."""
    from ..bundle.texts import kind_of, read_flag

    parser = require("fire.parser", extra="check", purpose="--override")
    key, value = key_and_value(text, "--override")
    if kind_of(key) is not None:
        return key, read_flag(key, value, optional=True)
    return key, parser.DefaultParseValue(value)
