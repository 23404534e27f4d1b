"""Compare learning objectives: tasks x objectives x seeds of one YAML, resumable, with tables, figures and one HTML page.

Trains what is missing, then writes results.csv, tables.md, tables.tex, figures/ and report.html into the output folder. Run it
again to continue after an interruption; start it several times, or under torchrun, to share the work. --only trains single
cells, named task/protocol/objective/seed with * and ?; --list shows them all.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from pathlib import Path
from typing import Any

from ..extras import require


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("config", help="the study (YAML)")
    parser.add_argument(
        "--output", default="comparison", help="folder of the cells and the report; finished cells are kept"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="ID=VALUE",
        help="set an entry of the study, for example data_root=/data or tasks::lesions::steps=100; may be repeated",
    )
    parser.add_argument("--only", action="append", metavar="PATTERN", help="train only these cells; may be repeated")
    parser.add_argument("--list", action="store_true", help="list the cells, and whether they are finished, then stop")
    parser.add_argument("--no-training", action="store_true", help="only write the report from what is finished")
    parser.add_argument("--no-report", action="store_true", help="only train")
    parser.add_argument("--device", help="where to compute, for example cpu or cuda:1 (default: a GPU if there is one)")


def run(arguments: argparse.Namespace) -> None:
    """Train, then report."""
    if not arguments.no_report:  # checked now, not after the training
        require("matplotlib", extra="experiments", purpose="the report of a study")
    from ..experiments import Study, run_study, write_study_report
    from ..experiments.runner import record_path
    from ..files import expect_writable

    study = Study.from_file(arguments.config, dict(_setting(text) for text in arguments.set))
    cells = study.cells()
    if arguments.only:
        chosen = [cell for cell in cells if any(fnmatch.fnmatch(cell.name, pattern) for pattern in arguments.only)]
        if not chosen:
            raise ValueError(
                f"--only {arguments.only}: found no such cell, expected some like {cells[0].name!r} (see --list)"
            )
        cells = chosen
    if arguments.list:
        for cell in cells:
            print(f"{cell.key}  {'finished' if record_path(arguments.output, cell).is_file() else '-':<8}  {cell.name}")
        return
    expect_writable(Path(arguments.output) / "report.html")
    errors: dict[str, str] = {}
    if not arguments.no_training:
        quiet = sys.stderr.isatty()  # a progress bar is shown instead

        def on_cell(cell: Any, record: dict[str, Any], finished: int, total: int) -> None:
            if not quiet:
                print(f"{finished}/{total} {cell.name}: {record['history']['seconds']:.0f} s of training", flush=True)

        summary = run_study(study, arguments.output, cells, arguments.device, on_cell=on_cell)
        errors = summary.errors
        print(f"cells finished: {summary.finished} of {summary.total} ({summary.trained} by this process)")
    if not arguments.no_report:
        for path in write_study_report(study, arguments.output):
            print(f"written: {path}")
    if errors:
        name, message = next(iter(errors.items()))
        raise RuntimeError(
            f"{len(errors)} cell(s) failed, the first one {name}: {message} (all in {arguments.output}/errors)"
        )


def _setting(text: str) -> tuple[str, Any]:
    """ID=VALUE, the value read as YAML: numbers are numbers."""
    yaml = require("yaml", extra="experiments", purpose="--set")
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ValueError(f"--set: found {text!r}, expected ID=VALUE")
    try:
        return key, yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise ValueError(f"--set {key}: found {value!r}, expected a value in YAML") from error
