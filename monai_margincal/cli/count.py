"""Count the voxels of every class in label files (NIfTI, NRRD, MetaImage, PNG, DICOM series and SEG), exactly.

A PATH is a label file, a glob pattern, a folder of labels or of a whole data set (then its labels, labelsTr, masks, ... are
counted), the folder of a DICOM series, or one MONAI data list (.json) whose entries hold the label under --key. With --merge,
the paths are JSON files of class counts, for example of sites that cannot share their labels.

Under torchrun every process counts its share, and the first one prints and writes the total.

  margincal count labels/ --num-classes 2 --names background lesion --output counts.json
  margincal count "labels/*_seg.nii.gz" --num-classes 4 --report report.html
  margincal count split.json --section training --num-classes 2 --json
  margincal count --merge site_a.json site_b.json --output total.json
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..counting.text_table import format_table
from ..errors import some_of
from .answer import Answer, add_json_argument

_KEYS = {
    "classes": "a list of id, name (or null), voxels, share and cases (cases with the class, or null)",
    "total": "voxels of all classes",
    "ignored": "voxels left out",
    "source": "what was counted",
    "failures": "faulty files, with --on-error report",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="label files, patterns, folders, or one data list (.json)"
    )
    parser.add_argument("--merge", action="store_true", help="the paths are JSON files of class counts: add them up")
    parser.add_argument(
        "--num-classes", type=int, metavar="N", help="the labels are 0 ... N - 1; any other is an error"
    )
    parser.add_argument("--ids", type=int, nargs="+", metavar="ID", help="the labels, where they are not 0 ... N - 1")
    parser.add_argument("--names", nargs="+", metavar="NAME", help="class names in the order of the ids")
    parser.add_argument("--ignore-index", type=int, metavar="ID", help="label of voxels that are left out")
    parser.add_argument("--key", default="label", help="key of the label in a data list")
    parser.add_argument("--section", default="training", help="section of a data list in the Decathlon's form")
    parser.add_argument(
        "--workers",
        dest="num_workers",
        type=int,
        default=0,
        metavar="N",
        help="reading processes in addition to the main one",
    )
    parser.add_argument(
        "--cache",
        dest="cache_dir",
        metavar="DIR",
        help="keep the count of every file here; a killed run continues from it",
    )
    parser.add_argument(
        "--on-error", choices=("raise", "report"), default="raise", help="stop at a faulty file, or list it and go on"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="JSON file to write; an older one of class counts is replaced"
    )
    parser.add_argument(
        "--report", metavar="FILE", help="HTML report to write, with findings about the files; an older one is replaced"
    )
    add_json_argument(parser, _KEYS)


def run(arguments: argparse.Namespace) -> Answer | None:
    """Count or merge, and write the files."""
    if arguments.merge and arguments.report:
        raise ValueError("--report with --merge: expected `margincal report` on the merged counts, which know no files")
    _expect_writable(arguments)
    if arguments.merge:
        merged = _merged(arguments.paths)
        return _written(merged.named(arguments.names) if arguments.names else merged, None, arguments)
    from ..statistics import scan_labels

    data, notes = _data_of(arguments)
    with _process_group() as rank:
        scan = scan_labels(
            data,
            key=arguments.key,
            num_classes=arguments.num_classes,
            ids=arguments.ids,
            ignore_index=arguments.ignore_index,
            num_workers=arguments.num_workers,
            cache_dir=arguments.cache_dir,
            on_error=arguments.on_error,
        )
    if rank > 0:
        return None
    if arguments.names:
        scan = dataclasses.replace(scan, counts=scan.counts.named(arguments.names))
    return _written(scan.counts, scan, arguments, notes)


def _expect_writable(arguments: argparse.Namespace) -> None:
    """Say before the count what could not be written after it."""
    from ..counting.class_counts import ClassCounts

    if arguments.output:
        ClassCounts.expect_replaceable(arguments.output)
    if arguments.report:
        from ..statistics.report.page import expect_replaceable

        expect_replaceable(arguments.report)
        if arguments.output and os.path.realpath(arguments.output) == os.path.realpath(arguments.report):
            raise ValueError(f"{arguments.report}: found it as --output and as --report, expected two files")


def _written(counts: Any, scan: Any, arguments: argparse.Namespace, notes: Sequence[str] = ()) -> Answer:
    """Write the files, then say what they hold."""
    from ..pages.numbers import readable_share

    if arguments.output:
        counts.to_json(arguments.output)
    if arguments.report:
        from ..statistics.report import write_report

        write_report(scan, arguments.report)
    failures = [failure.message for failure in scan.failures] if scan is not None else []
    if counts.cases:
        cases = [sum(count > 0 for count in column) for column in zip(*counts.cases.values(), strict=True)]
    else:
        cases = [None] * len(counts)
    columns = (
        counts.ids,
        counts.names or [None] * len(counts),
        counts.counts.tolist(),
        counts.frequencies.tolist(),
        cases,
    )
    keys = ("id", "name", "voxels", "share", "cases")
    classes = [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]
    table = format_table(
        ["class", "voxels", "share", *(["cases"] if counts.cases else [])],
        [
            [label, f"{row['voxels']:,}", readable_share(row["share"]), *([str(row["cases"])] if counts.cases else [])]
            for label, row in zip(counts.labels, classes, strict=True)
        ],
    )
    ignored = f"ignored voxels: {counts.ignored:,}"
    return Answer(
        "\n".join([table, *([ignored] if counts.ignored else []), *(f"left out: {message}" for message in failures)]),
        {
            "classes": classes,
            "total": counts.total,
            "ignored": counts.ignored,
            "source": counts.source,
            "failures": failures,
        },
        notes=[f"counted: {counts.source}", *notes],
        written=[path for path in (arguments.output, arguments.report) if path],
    )


def _merged(paths: list[str]) -> Any:
    """Add up the files; where cases share names, the name of their file tells them apart."""
    from ..counting.class_counts import ClassCounts

    first: dict[str, str] = {}
    for path in paths:
        place = os.path.realpath(path)
        if place in first:
            raise ValueError(f"--merge: {path}: found a file twice, first as {first[place]}, expected every file once")
        first[place] = path
    parts = {path: ClassCounts.from_json(path) for path in paths}
    names = [case for part in parts.values() for case in part.cases or ()]
    if len(set(names)) < len(names):
        stems = [Path(path).stem for path in parts]
        keys = stems if len(set(stems)) == len(stems) else list(parts)
        return sum(part.prefixed(f"{key}/") for key, part in zip(keys, parts.values(), strict=True))
    return sum(parts.values())


@contextlib.contextmanager
def _process_group() -> Iterator[int]:
    """Join the processes that torchrun started in one group over gloo; gives the rank of this one, 0 without torchrun."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield 0
        return
    from ..processes import end_process_group, own_rank, start_process_group

    start_process_group("cpu")
    try:
        yield own_rank()
    finally:
        end_process_group()


def _data_of(arguments: argparse.Namespace) -> tuple[Any, list[str]]:
    """A single .json is a data list, everything else stands for label files; and a note on what was found in folders."""
    if len(arguments.paths) > 1 or not arguments.paths[0].endswith(".json"):
        from ..datasets import label_files

        found: list[str] = []
        notes: list[str] = []
        for path in arguments.paths:
            files = list(map(str, label_files(path))) if Path(path).expanduser().is_dir() else [path]
            if files != [path]:
                folders = sorted({os.path.dirname(file) for file in files})  # noqa: PTH120 - as it was typed
                notes.append(f"label files: {len(files)} in {some_of(folders, at_most=3)}")
            found += files
        return found, notes
    from ..datasets.datalist_file import read_datalist

    sections = read_datalist(
        arguments.paths[0], [arguments.section], [arguments.key], optional_keys=["image"], plain_list=True
    )
    return sections[arguments.section], []
