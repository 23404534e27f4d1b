"""Count the voxels of every class in label files (NIfTI, NRRD, MetaImage, PNG, DICOM series and SEG), exactly.

PATHS are label files, glob patterns, folders of a DICOM series, or one MONAI data list (.json) whose entries hold the label
under --key. With --merge, PATHS are JSON files of class counts, for example of sites that cannot share their labels.

Under torchrun every process counts its share, and the first one prints and writes the total.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..counting.text_table import format_table
from .console import printing_beside


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("paths", nargs="+", metavar="PATHS", help="label files, glob patterns or one data list (.json)")
    parser.add_argument("--merge", action="store_true", help="PATHS are JSON files of class counts: add them up")
    parser.add_argument("--num-classes", type=int, help="the labels are 0 ... N - 1; any other is an error")
    parser.add_argument("--ids", type=int, nargs="+", help="the labels, where they are not 0 ... N - 1")
    parser.add_argument("--names", nargs="+", help="class names in the order of the ids")
    parser.add_argument("--ignore-index", type=int, help="label of voxels that are left out")
    parser.add_argument("--key", default="label", help="key of the label in a data list")
    parser.add_argument("--section", default="training", help="section of a data list in the Decathlon's form")
    parser.add_argument("--workers", type=int, default=0, help="reading processes in addition to the main one")
    parser.add_argument(
        "--cache", metavar="DIR", help="keep the count of every file here; a killed run continues from it"
    )
    parser.add_argument(
        "--on-error", choices=("raise", "report"), default="raise", help="stop at a faulty file, or list it and go on"
    )
    parser.add_argument("--output", help="JSON file to write; an older one of class counts is replaced")
    parser.add_argument(
        "--report", help="HTML report to write, with findings about the files; an older one is replaced"
    )


def run(arguments: argparse.Namespace) -> None:
    """Count or merge, write the files, print the table."""
    if arguments.merge and arguments.report:
        raise ValueError("--report with --merge: expected `margincal report` on the merged counts, which know no files")
    _expect_writable(arguments)
    with printing_beside(arguments.output, arguments.report):
        if arguments.merge:
            merged = _merged(arguments.paths)
            _deliver(merged.named(arguments.names) if arguments.names else merged, None, arguments)
            return
        from ..statistics import scan_labels

        with _process_group() as rank:
            scan = scan_labels(
                _data_of(arguments),
                key=arguments.key,
                num_classes=arguments.num_classes,
                ids=arguments.ids,
                ignore_index=arguments.ignore_index,
                num_workers=arguments.workers,
                cache_dir=arguments.cache,
                on_error=arguments.on_error,
            )
        if rank > 0:
            return
        if arguments.names:
            scan = dataclasses.replace(scan, counts=scan.counts.named(arguments.names))
        _deliver(scan.counts, scan, arguments)


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


def _deliver(counts: Any, scan: Any, arguments: argparse.Namespace) -> None:
    """Write the files first, then print: what cannot be printed is not lost."""
    if arguments.output:
        counts.to_json(arguments.output)
    if arguments.report:
        from ..statistics.report import write_report

        write_report(scan, arguments.report)
    rows = zip(counts.labels, counts.counts, counts.frequencies, strict=True)
    table = [[label, f"{n:,}", f"{share:.4%}"] for label, n, share in rows]
    if counts.cases:
        for row, column in zip(table, zip(*counts.cases.values(), strict=True), strict=True):
            row.append(str(sum(count > 0 for count in column)))
    print(format_table(["class", "voxels", "share", *(["cases"] if counts.cases else [])], table))
    if counts.ignored:
        print(f"ignored voxels: {counts.ignored:,}")
    print(f"counted: {counts.source}")
    for failure in scan.failures if scan is not None else ():
        print(f"left out: {failure.message}")
    for path in filter(None, (arguments.output, arguments.report)):
        print(f"written: {path}")


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


def _data_of(arguments: argparse.Namespace) -> Any:
    """A single .json is a data list, everything else is a list of label files."""
    if len(arguments.paths) > 1 or not arguments.paths[0].endswith(".json"):
        return arguments.paths
    from ..datasets.datalist_file import read_datalist

    sections = read_datalist(
        arguments.paths[0], [arguments.section], [arguments.key], optional_keys=["image"], plain_list=True
    )
    return sections[arguments.section]
