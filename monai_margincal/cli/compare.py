"""Compare learning objectives: tasks x objectives x seeds of one YAML, resumable, with tables, figures and one HTML page.

Trains what is missing, then writes results.csv, tables.md, tables.tex, figures/ and report.html into the output folder. Run it
again to continue after an interruption; start it several times, or under torchrun, to share the work. --only trains single
cells, named task/protocol/objective/seed with * and ?; --list shows them all. --init writes a study to begin with, about your
folder of images and labels; it runs as it stands.

  margincal compare --init study.yaml --data my_data
  margincal compare study.yaml --output results
  margincal compare study.yaml --set data_root=/data --only "*/*/*/0" --device cpu
  margincal compare study.yaml --list
"""

from __future__ import annotations

import argparse
import fnmatch
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..extras import require
from .answer import Answer, add_json_argument


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.set_defaults(runs_networks=True)
    parser.add_argument("config", nargs="?", metavar="FILE", help="the study (YAML)")
    beginning = parser.add_argument_group("to begin with")
    beginning.add_argument("--init", metavar="FILE", help="write a commented study and stop; FILE must not exist yet")
    beginning.add_argument(
        "--data",
        metavar="DIR",
        help="folder of images and labels that it is about; by default the one that FILE lies in",
    )
    beginning.add_argument(
        "--image", metavar="PATTERN", default="images/{case}.*", help="where its images lie, below DIR"
    )
    beginning.add_argument(
        "--label", metavar="PATTERN", default="labels/{case}.*", help="where its labels lie, below DIR"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        default="comparison",
        help="folder of the cells and the report; finished cells are kept",
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
    parser.add_argument(
        "--device", metavar="NAME", help="where to compute, for example cpu or cuda:1 (default: a GPU if there is one)"
    )
    add_json_argument(
        parser,
        {
            "cells": "a list of key, name and is_finished, of those that were asked for",
            "finished": "how many of them",
            "total": "how many there are",
            "trained": "how many this process has finished",
            "errors": "name of a cell -> why it could not be finished",
        },
    )


def run(arguments: argparse.Namespace) -> Answer:
    """Train, then report; or write a study to begin with."""
    if (arguments.init is None) == (arguments.config is None):
        arguments.parser.error(
            "found " + ("neither" if arguments.init is None else "both") + " of FILE and --init, expected one"
        )
    if arguments.init is not None:
        return _begun(arguments)
    if not arguments.no_report:  # checked now, not after the training
        require("matplotlib", extra="experiments", purpose="the report of a study")
    from ..experiments import Study, run_study, write_study_report
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
        found = _cells(arguments.output, cells)
        lines = [f"{cell['key']}  {'finished' if cell['is_finished'] else '-':<8}  {cell['name']}" for cell in found]
        return Answer("\n".join(lines), _data(found, 0, {}))
    expect_writable(Path(arguments.output) / "report.html")
    errors: dict[str, str] = {}
    trained, text = 0, ""
    if not arguments.no_training:
        has_bar = sys.stderr.isatty()

        def on_cell(cell: Any, record: dict[str, Any], finished: int, total: int) -> None:
            if not has_bar:
                print(f"{finished}/{total} {cell.name}: {record['history']['seconds']:.0f} s of training", flush=True)

        summary = run_study(study, arguments.output, cells, arguments.device, on_cell=on_cell)
        errors, trained = summary.errors, summary.trained
        text = f"cells finished: {summary.finished} of {summary.total} ({summary.trained} by this process)"
    written = [] if arguments.no_report else write_study_report(study, arguments.output)
    failed = ""
    if errors:
        name, message = next(iter(errors.items()))
        failed = f"{len(errors)} cell(s) failed, the first one {name}: {message} (all in {arguments.output}/errors)"
    return Answer(text, _data(_cells(arguments.output, cells), trained, errors), written=written, failed=failed)


def _begun(arguments: argparse.Namespace) -> Answer:
    from ..experiments.study_template import study_template
    from ..files import expect_writable, write_text
    from ..streams import is_stream

    file = Path(arguments.init)
    if file.exists() and not is_stream(file):
        raise FileExistsError(f"{file} exists and is not overwritten")
    expect_writable(file)
    write_text(file, study_template(file, arguments.data or file.absolute().parent, arguments.image, arguments.label))
    run_it = f"run it: margincal compare {shlex.quote(arguments.init)} --output results"
    return Answer(data=_data([], 0, {}), notes=[run_it], written=[arguments.init])


def _cells(output: str, cells: Sequence[Any]) -> list[dict[str, Any]]:
    from ..experiments.runner import record_path

    return [{"key": cell.key, "name": cell.name, "is_finished": record_path(output, cell).is_file()} for cell in cells]


def _data(cells: list[dict[str, Any]], trained: int, errors: dict[str, str]) -> dict[str, Any]:
    finished = sum(cell["is_finished"] for cell in cells)
    return {"cells": cells, "finished": finished, "total": len(cells), "trained": trained, "errors": errors}


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
