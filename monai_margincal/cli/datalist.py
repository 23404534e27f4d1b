"""Write a MONAI data list (JSON) for a data set on disk.

KIND is `folder` (images and labels matched by case name, never by position), `frames` (pictures and class maps, likewise, divided
by sequence), `uestc-covid19` or `endovis2017` (with the published splits).
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
    parser.add_argument("kind", choices=sorted(_KINDS), metavar="KIND", help=", ".join(sorted(_KINDS)))
    parser.add_argument("root", help="the data set's folder")
    parser.add_argument("--output", required=True, help="JSON file to write; it must not exist yet")
    parser.add_argument("--image", default="images/{case}.*", help="folder, frames: template of the images below ROOT")
    parser.add_argument("--label", default="labels/{case}.*", help="folder, frames: template of the labels below ROOT")
    parser.add_argument(
        "--validation",
        type=float,
        default=0.2,
        help="share used to choose the model: of the cases, or of the sequences",
    )
    parser.add_argument("--test", type=float, default=0.2, help="share used only to report")
    parser.add_argument("--seed", type=int, default=0, help="folder, frames: seed of the split")
    parser.add_argument(
        "--group-pattern",
        help="frames: where in a frame's name the sequence stands, such as '{group}_*'; by default before the last number",
    )
    parser.add_argument(
        "--part", type=int, choices=(1, 2), default=1, help="uestc-covid19: 1 coarse labels, 2 expert labels"
    )
    parser.add_argument("--task", choices=("binary", "parts", "types"), help="endovis2017: which classes")
    parser.add_argument("--maps", help="endovis2017: folder of the class maps; default: TASK_maps beside the list")
    parser.add_argument(
        "--split",
        choices=("frames", "sequence", "fold"),
        default="frames",
        help="endovis2017: the paper's by frames, one sequence held out, or one of four folds held out",
    )
    parser.add_argument(
        "--held-out", type=int, help="endovis2017: which sequence (1-8) or fold (1-4) is the validation"
    )


def run(arguments: argparse.Namespace) -> None:
    """List the cases and write the file."""
    from ..files import expect_writable, write_text
    from ..streams import is_stream

    output = Path(arguments.output)
    if output.exists() and not is_stream(output):
        raise FileExistsError(f"{output} exists and is not overwritten")
    expect_writable(output)
    sections = _KINDS[arguments.kind](arguments)
    base = output.absolute().parent
    content = {
        section: [
            {key: _path(value, base) if key in ("image", "label") else value for key, value in item.items()}
            for item in items
        ]
        for section, items in sections.items()
    }
    write_text(output, json.dumps(content, indent=1) + "\n")
    with printing_beside(arguments.output):
        print(f"{output}: " + ", ".join(f"{len(items)} {section}" for section, items in sections.items()))


def _folder(arguments: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    from ..datasets import folder_datalist, split_datalist

    data = folder_datalist(arguments.root, arguments.image, arguments.label)
    return split_datalist(data, _shares(arguments), arguments.seed)


def _frames(arguments: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    from ..datasets import frames_datalist, split_by_group

    data = frames_datalist(arguments.root, arguments.image, arguments.label, arguments.group_pattern)
    return split_by_group(data, _shares(arguments), arguments.seed)


def _shares(arguments: argparse.Namespace) -> dict[str, float | None]:
    """A share of 0 leaves the section out."""
    shares = {name: getattr(arguments, name) for name in ("validation", "test")}
    return {"training": None, **{name: share for name, share in shares.items() if share}}


def _uestc(arguments: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    from ..datasets import uestc_covid19_datalist

    sections: tuple[Literal["training", "validation", "test"], ...] = ("training", "validation", "test")
    return {section: uestc_covid19_datalist(arguments.root, arguments.part, section) for section in sections}


def _endovis(arguments: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    from ..datasets import endovis2017_datalist

    if arguments.task is None:
        raise ValueError("--task: found none, expected binary, parts or types")
    maps = arguments.maps or Path(arguments.output).absolute().parent / f"{arguments.task}_maps"
    return endovis2017_datalist(
        arguments.root, arguments.task, maps, split=arguments.split, held_out=arguments.held_out
    )


_KINDS = {"endovis2017": _endovis, "folder": _folder, "frames": _frames, "uestc-covid19": _uestc}


def _path(value: str, base: Path) -> str:
    path = Path(value)
    return os.fspath(path.relative_to(base)) if path.is_relative_to(base) else os.fspath(path)
