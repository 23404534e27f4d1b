"""Write a MONAI data list (JSON) for a data set on disk.

KIND is `folder` (images and labels matched by case name, never by position) or `uestc-covid19` (with the paper's splits).
Sections: training, validation, test. Paths are relative to the list's folder if the data lie below it, else absolute.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any, Literal

from .console import printing_beside


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("kind", choices=("folder", "uestc-covid19"), metavar="KIND", help="folder or uestc-covid19")
    parser.add_argument("root", help="the data set's folder")
    parser.add_argument("--output", required=True, help="JSON file to write; it must not exist yet")
    parser.add_argument("--image", default="images/{case}.*", help="folder: template of the images below ROOT")
    parser.add_argument("--label", default="labels/{case}.*", help="folder: template of the labels below ROOT")
    parser.add_argument(
        "--validation", type=float, default=0.2, help="folder: share of the cases used to choose the model"
    )
    parser.add_argument("--test", type=float, default=0.2, help="folder: share of the cases used only to report")
    parser.add_argument("--seed", type=int, default=0, help="folder: seed of the split")
    parser.add_argument(
        "--part", type=int, choices=(1, 2), default=1, help="uestc-covid19: 1 coarse labels, 2 expert labels"
    )


def run(arguments: argparse.Namespace) -> None:
    """List the cases and write the file."""
    from ..files import expect_writable, write_text
    from ..streams import is_stream

    output = Path(arguments.output)
    if output.exists() and not is_stream(output):
        raise FileExistsError(f"{output} exists and is not overwritten")
    expect_writable(output)
    sections = _uestc(arguments) if arguments.kind == "uestc-covid19" else _folder(arguments)
    base = output.absolute().parent
    content = {
        section: [
            {key: _path(value, base) if key != "case" else value for key, value in item.items()} for item in items
        ]
        for section, items in sections.items()
    }
    write_text(output, json.dumps(content, indent=1) + "\n")
    with printing_beside(arguments.output):
        print(f"{output}: " + ", ".join(f"{len(items)} {section}" for section, items in sections.items()))


def _folder(arguments: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    from ..datasets import folder_datalist, split_datalist

    data = folder_datalist(arguments.root, arguments.image, arguments.label)
    splits: dict[str, float | None] = {"training": None}
    # a share of 0 leaves the section out
    splits.update({name: share for name in ("validation", "test") if (share := getattr(arguments, name))})
    return split_datalist(data, splits, arguments.seed)


def _uestc(arguments: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    from ..datasets import uestc_covid19_datalist

    sections: tuple[Literal["training", "validation", "test"], ...] = ("training", "validation", "test")
    return {section: uestc_covid19_datalist(arguments.root, arguments.part, section) for section in sections}


def _path(value: str, base: Path) -> str:
    path = Path(value)
    return os.fspath(path.relative_to(base)) if path.is_relative_to(base) else os.fspath(path)
