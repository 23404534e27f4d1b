"""Segment scans with a shipped bundle: files, folders of scans, folders of DICOM slices.

One mask per scan, on the scan's own grid, and a table of volumes go into the output folder. A scan that cannot be read is named
and does not stop the others; the exit status is then 1. Every key of the bundle's inference can be given with --set.

  margincal segment ct.nii.gz -o results
  margincal segment scans/ dicom_series/ -o results --outputs mask,overlay
  margincal segment scans/ -o results --set checkpoint=models/mine.pt --set features=[8,16,32,64,128]
  margincal segment clip.mp4 -o results --bundle surgical_instrument_coplenet --outputs frame_mask,frame_film
"""

from __future__ import annotations

import argparse
import csv
import os
from pathlib import Path
from typing import Any

from .answer import Answer, add_json_argument
from .bundle_command import add_bundle_arguments, bundle_root, run_bundle


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("scans", nargs="+", metavar="SCAN", help="file, folder of scans, or folder of one DICOM series")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="folder of the results")
    parser.add_argument("--outputs", metavar="KINDS", help="what is written, for example mask,overlay,dicom_seg")
    parser.add_argument("--checkpoint", metavar="FILE", help="weights of your own, in place of the bundle's")
    add_bundle_arguments(parser)
    add_json_argument(
        parser,
        {"command": "what was run", "volumes": "the rows of OUTPUT/volumes.csv for these scans, numbers as numbers"},
    )


def run(arguments: argparse.Namespace) -> Answer:
    """Run the bundle's inference."""
    from ..datasets import scan_list

    scans = scan_list(arguments.scans)
    # the results keep the folders below this one, so that scans of one name in two folders stay apart
    common = Path(os.path.commonpath([Path(scan["image"]).parent for scan in scans]))
    keys = {
        "dataset_dir": str(common),
        "dataset#data": repr(scans),
        "output_dir": str(Path(arguments.output).absolute()),
    }
    if arguments.outputs:
        keys["outputs"] = arguments.outputs
    if arguments.checkpoint:
        keys["checkpoint"] = str(Path(arguments.checkpoint).expanduser().absolute())
    flags = {"output_dir": "--output", "outputs": "--outputs", "checkpoint": "--checkpoint"}
    command, status = run_bundle(arguments, bundle_root(arguments.bundle), ["inference.json"], keys, flags=flags)
    if arguments.dry_run:
        return Answer(command, {"command": command, "volumes": []})
    volumes = _volumes(Path(arguments.output) / "volumes.csv", {scan["image"] for scan in scans})
    return Answer(data={"command": command, "volumes": volumes}, status=status)


def _volumes(table: Path, scans: set[str]) -> list[dict[str, Any]]:
    """The rows of the scans in the table of volumes: numbers as numbers, null for what is not there."""
    if not table.is_file():
        return []
    with table.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["image"] in scans]
    return [{key: _value(key, text) for key, text in row.items()} for row in rows]


def _value(column: str, text: str) -> str | float | None:
    if not text or not column.endswith(("_voxels", "_ml", "_mm3")):
        return text or None
    return int(text) if text.isdecimal() else float(text)
