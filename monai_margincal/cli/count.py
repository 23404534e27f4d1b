"""Count the voxels of every class in label files (NIfTI, NRRD, MetaImage, DICOM series), exactly.

PATHS are label files, glob patterns, folders of a DICOM series, or one MONAI data list (.json) whose entries have the key --key.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from .table import format_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("paths", nargs="+", metavar="PATHS", help="label files, glob patterns or one data list (.json)")
    parser.add_argument("--num-classes", type=int, help="the labels are 0 ... N - 1; any other is an error")
    parser.add_argument("--ids", type=int, nargs="+", help="the labels, where they are not 0 ... N - 1")
    parser.add_argument("--names", nargs="+", help="class names in the order of the ids")
    parser.add_argument("--ignore-index", type=int, help="label of voxels that are left out")
    parser.add_argument("--key", default="label", help="key of the label in a data list")
    parser.add_argument("--section", default="training", help="section of a data list of the Decathlon's form")
    parser.add_argument("--workers", type=int, default=0, help="processes that read beside the main one")
    parser.add_argument("--output", help="JSON file to write; an older one of class counts is replaced")


def run(arguments: argparse.Namespace) -> None:
    """Count, print the table, write the JSON."""
    from ..statistics import count_labels

    counts = count_labels(
        _data_of(arguments),
        key=arguments.key,
        num_classes=arguments.num_classes,
        ids=arguments.ids,
        ignore_index=arguments.ignore_index,
        num_workers=arguments.workers,
    )
    if arguments.names:
        counts = counts.named(arguments.names)
    rows = zip(counts.labels, counts.counts, counts.frequencies, strict=True)
    table = [[label, f"{n:,}", f"{share:.4%}"] for label, n, share in rows]
    if counts.cases:
        for row, column in zip(table, zip(*counts.cases.values(), strict=True), strict=True):
            row.append(str(sum(count > 0 for count in column)))
    print(format_table(["class", "voxels", "share", *(["cases"] if counts.cases else [])], table))
    if counts.ignored:
        print(f"ignored voxels: {counts.ignored:,}")
    print(f"counted: {counts.source}")
    if arguments.output:
        counts.to_json(arguments.output)
        print(f"written: {arguments.output}")


def _data_of(arguments: argparse.Namespace) -> Any:
    """One .json is a data list, everything else are label files."""
    if len(arguments.paths) == 1 and arguments.paths[0].endswith(".json"):
        path = Path(arguments.paths[0])
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise FileNotFoundError(f"{path}: no such file, expected a MONAI data list") from None
        except ValueError as error:
            raise ValueError(f"{path}: found {error}, expected a MONAI data list in JSON") from error
        if isinstance(content, dict):
            if arguments.section not in content:
                raise ValueError(
                    f"{path}: found the sections {sorted(content)}, expected {arguments.section!r} (--section)"
                )
            content = content[arguments.section]
        return [_absolute(item, arguments.key, path) for item in content]
    return arguments.paths


def _absolute(item: Any, key: str, datalist: Path) -> Any:
    """Relative paths of a data list are relative to the list's folder, as in the Decathlon."""
    if not isinstance(item, dict) or key not in item:
        raise ValueError(f"{datalist}: found the entry {item!r}, expected a mapping with the key {key!r} (--key)")
    return {**item, key: str(datalist.parent / item[key])}
