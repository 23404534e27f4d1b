"""Write a MONAI data list (JSON) for a data set on disk.

KIND is `folder` (images and labels matched by case name, never by position), `frames` (pictures and class maps, likewise, divided
by sequence), `uestc-covid19` or `endovis2017` (with the published splits).
Sections: training, validation, test; with --folds training and test, and each case of training says its fold. Cases of a group,
such as a patient, stay together. Paths are relative to the list's folder if the data lie below it, else absolute.

  margincal datalist folder DATA --output split.json
  margincal datalist folder DATA --groups cases.csv --folds 5 --test 0 --output folds.json
  margincal datalist folder DATA --image "{case}/ct.nii.gz" --label "{case}/seg.nii.gz" --skip-unpaired -o split.json
  margincal datalist endovis2017 ROOT --task parts --output parts.json
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any, Literal

from .answer import Answer, add_json_argument


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("kind", choices=sorted(_KINDS), metavar="KIND", help=", ".join(sorted(_KINDS)))
    parser.add_argument("root", metavar="ROOT", help="the data set's folder")
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="JSON file to write; it must not exist yet"
    )
    parser.add_argument(
        "--image",
        metavar="PATTERN",
        default="images/{case}.*",
        help="folder, frames: template of the images below ROOT; {group} may stand for the patient",
    )
    parser.add_argument(
        "--label",
        metavar="PATTERN",
        default="labels/{case}.*",
        help="folder, frames: template of the labels below ROOT",
    )
    parser.add_argument(
        "--skip-unpaired",
        action="store_true",
        help="folder: leave out images without labels and labels without images, and name them, instead of refusing",
    )
    parser.add_argument(
        "--validation",
        type=float,
        metavar="SHARE",
        help="folder, frames: share of the cases used to choose the model, by default 0.2",
    )
    parser.add_argument(
        "--test",
        type=float,
        metavar="SHARE",
        default=0.2,
        help="folder, frames: share of the cases used only to report",
    )
    parser.add_argument(
        "--folds",
        type=int,
        metavar="N",
        help="folder, frames: number of folds for cross-validation, instead of --validation",
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", default=0, help="folder, frames: seed of the split or of the folds"
    )
    parser.add_argument(
        "--groups",
        metavar="FILE",
        help="folder: CSV file that says which cases belong together, such as those of a patient",
    )
    parser.add_argument(
        "--group-column",
        "--group_column",
        metavar="NAME",
        help="folder: its column of groups, where the header leaves a choice",
    )
    parser.add_argument(
        "--group-pattern",
        "--group_pattern",
        metavar="PATTERN",
        help="folder, frames: what case names look like; {group} is the patient or the sequence, * anything: '{group}_*'; for "
        "frames by default what stands before the last number",
    )
    parser.add_argument(
        "--part", type=int, choices=(1, 2), default=1, help="uestc-covid19: 1 coarse labels, 2 expert labels"
    )
    parser.add_argument("--task", choices=("binary", "parts", "types"), help="endovis2017: which classes")
    parser.add_argument(
        "--maps", metavar="DIR", help="endovis2017: folder of the class maps; default: TASK_maps beside the list"
    )
    parser.add_argument(
        "--split",
        choices=("frames", "sequence", "fold"),
        default="frames",
        help="endovis2017: the paper's by frames, one sequence held out, or one of four folds held out",
    )
    parser.add_argument(
        "--held-out", type=int, metavar="N", help="endovis2017: which sequence (1-8) or fold (1-4) is the validation"
    )
    add_json_argument(
        parser, {"sections": "section -> cases, groups and folds (cases per fold), each null if it has none"}
    )


def run(arguments: argparse.Namespace) -> Answer:
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
    numbers = {section: _numbers(items) for section, items in sections.items()}
    return Answer(
        ", ".join(f"{known['cases']} {section}{_in_words(known)}" for section, known in numbers.items()),
        {"sections": numbers},
        written=[arguments.output],
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
        skip_unpaired=arguments.skip_unpaired,
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


def _numbers(items: list[dict[str, Any]]) -> dict[str, Any]:
    """How many cases a section has, and from how many groups and folds they are, as far as they say it."""
    groups = {item["group"] for item in items if "group" in item}
    folds = Counter(item["fold"] for item in items if "fold" in item)
    return {
        "cases": len(items),
        "groups": len(groups) or None,
        "folds": [folds[fold] for fold in sorted(folds)] or None,
    }


def _in_words(known: dict[str, Any]) -> str:
    said = []
    if known["groups"]:
        said.append(f"{known['groups']} group{'' if known['groups'] == 1 else 's'}")
    if known["folds"]:
        said.append(f"{len(known['folds'])} folds of {', '.join(map(str, known['folds']))}")
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
