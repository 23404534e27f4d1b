"""Write a MONAI data list (JSON) for a data set on disk.

KIND is `folder` (images and labels matched by case name, never by position), `frames` (pictures and class maps, likewise, divided
by sequence), `uestc-covid19` or `endovis2017` (with the published splits).
Sections: training, validation, test; with --folds training and test, and each case of training says its fold. Cases of a group,
such as a patient, stay together. Paths are relative to the list's folder if the data lie below it, else absolute.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any, Literal

from .console import printing_beside


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("kind", choices=sorted(_KINDS), metavar="KIND", help=", ".join(sorted(_KINDS)))
    parser.add_argument("root", help="the data set's folder")
    parser.add_argument("--output", required=True, help="JSON file to write; it must not exist yet")
    parser.add_argument(
        "--image",
        default="images/{case}.*",
        help="folder, frames: template of the images below ROOT; {group} may stand for the patient",
    )
    parser.add_argument("--label", default="labels/{case}.*", help="folder, frames: template of the labels below ROOT")
    parser.add_argument(
        "--validation", type=float, help="folder, frames: share of the cases used to choose the model, by default 0.2"
    )
    parser.add_argument(
        "--test", type=float, default=0.2, help="folder, frames: share of the cases used only to report"
    )
    parser.add_argument(
        "--folds", type=int, help="folder, frames: number of folds for cross-validation, instead of --validation"
    )
    parser.add_argument("--seed", type=int, default=0, help="folder, frames: seed of the split or of the folds")
    parser.add_argument(
        "--groups", help="folder: CSV file that says which cases belong together, such as those of a patient"
    )
    parser.add_argument(
        "--group-column", "--group_column", help="folder: its column of groups, where the header leaves a choice"
    )
    parser.add_argument(
        "--group-pattern",
        "--group_pattern",
        help="folder, frames: what case names look like; {group} is the patient or the sequence, * anything: '{group}_*'; for "
        "frames by default what stands before the last number",
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
        print(
            f"{output}: " + ", ".join(f"{len(items)} {section}{_groups(items)}" for section, items in sections.items())
        )


def _folder(arguments: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    from ..datasets import folder_datalist

    data = folder_datalist(
        arguments.root,
        arguments.image,
        arguments.label,
        groups=arguments.groups,
        group_column=arguments.group_column,
        group_pattern=arguments.group_pattern,
    )
    return _divided(data, arguments)


def _frames(arguments: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    from ..datasets import frames_datalist

    if arguments.groups or arguments.group_column:
        raise ValueError(
            "--groups: found a table for frames, expected --group-pattern, or `folder`, which takes tables"
        )
    return _divided(
        frames_datalist(arguments.root, arguments.image, arguments.label, arguments.group_pattern), arguments
    )


def _divided(data: list[dict[str, str]], arguments: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """Sections or folds, with a warning where the names suggest groups that nobody has said."""
    from ..datasets import assign_folds, split_datalist, warn_of_shared_groups

    if arguments.folds is not None and arguments.validation is not None:
        raise ValueError(f"--validation: found {arguments.validation} beside --folds, expected one of the two")
    validation = 0.2 if arguments.validation is None and arguments.folds is None else arguments.validation
    shares = {"validation": validation, "test": arguments.test}
    # a share of 0 leaves the section out
    splits = {"training": None, **{name: share for name, share in shares.items() if share}}
    parts = split_datalist(data, splits, arguments.seed)
    if arguments.folds is not None:
        parts["training"] = assign_folds(parts["training"], arguments.folds, arguments.seed)
        warn_of_shared_groups(_by_fold(parts))
    else:
        warn_of_shared_groups(parts)
    return parts


def _by_fold(parts: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """The parts with every fold as a part of its own."""
    by_fold = {section: items for section, items in parts.items() if section != "training"}
    for item in parts["training"]:
        by_fold.setdefault(f"fold {item['fold']}", []).append(item)
    return by_fold


def _groups(items: list[dict[str, Any]]) -> str:
    """How many groups and folds the cases of a section are from, as far as they say it."""
    groups = {item["group"] for item in items if "group" in item}
    folds = Counter(item["fold"] for item in items if "fold" in item)
    said = [f"{len(groups)} group{'' if len(groups) == 1 else 's'}"] if groups else []
    if folds:
        said.append(f"{len(folds)} folds of {', '.join(str(folds[fold]) for fold in sorted(folds))}")
    return f" ({'; '.join(said)})" if said else ""


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
