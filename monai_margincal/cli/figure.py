"""Draw image, truth and the predictions of several runs side by side, from saved predictions.

The prediction of a case in a run's folder is the file that is called after its image, alone or with _mask, in any subfolder.
Volumes (NIfTI) show the axial slice with the most voxels of the rarest class. Every panel says its IoU.

  margincal figure --image ct.nii.gz --label ct_label.nii.gz --run "cross-entropy=ce/" --run margins=mc/ -o figure.png
  margincal figure --image f1.png --label l1.png --image f2.png --label l2.png --run ours=out/ --class-names background,tool
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from .answer import Answer, add_json_argument
from .bundle_command import key_and_value

if TYPE_CHECKING:
    from ..outputs.compared_case import ComparedCase


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument(
        "--image", action="append", required=True, metavar="FILE", help="frame or volume; may be repeated"
    )
    parser.add_argument("--label", action="append", required=True, metavar="FILE", help="its truth, in the same order")
    parser.add_argument(
        "--run",
        action="append",
        required=True,
        metavar="NAME=DIR",
        dest="runs",
        help="saved predictions; may be repeated",
    )
    parser.add_argument("-o", "--output", default="figure.png", metavar="FILE", help="the picture")
    parser.add_argument(
        "--class-names", default="background,foreground", metavar="NAMES", help="by id, the background first"
    )
    parser.add_argument(
        "--ignore-index", type=int, metavar="ID", help="label of pixels that count nowhere, such as 255"
    )
    parser.add_argument("--slice", type=int, metavar="K", help="another axial slice, counted from the feet")
    parser.add_argument(
        "--window", nargs=2, type=float, metavar=("LOW", "HIGH"), help="intensities shown as black and white"
    )
    add_json_argument(
        parser,
        {"cases": "a list of title and iou: run -> class -> IoU of what is shown, null for a class in neither map"},
    )


def run(arguments: argparse.Namespace) -> Answer:
    """Find the predictions, read, draw."""
    from ..outputs.compared_case import compared_case
    from ..outputs.comparison_picture import save_comparison

    names = [name.strip() for name in arguments.class_names.split(",")]
    if len(arguments.label) != len(arguments.image):
        raise ValueError(
            f"--label: found {len(arguments.label)} files, expected {len(arguments.image)}, one per --image"
        )
    folders = [key_and_value(text, "--run") for text in arguments.runs]
    if len(dict(folders)) < len(folders):
        raise ValueError(f"--run: found {', '.join(name for name, _ in folders)}, expected each name once")
    if len(names) < 2:
        raise ValueError(
            f"--class-names: found {arguments.class_names!r}, expected the background and at least one class"
        )
    cases = [
        compared_case(
            image,
            label,
            {name: _prediction(Path(image), Path(folder)) for name, folder in folders},
            len(names),
            ignore_index=arguments.ignore_index,
            slice_index=arguments.slice,
        )
        for image, label in zip(arguments.image, arguments.label, strict=True)
    ]
    window = None if arguments.window is None else (arguments.window[0], arguments.window[1])
    save_comparison(cases, arguments.output, names, arguments.ignore_index, window=window)
    found = [
        {
            "title": case.title,
            "iou": {run: _by_class(case, run, names, arguments.ignore_index) for run in case.predictions},
        }
        for case in cases
    ]
    return Answer(data={"cases": found}, written=[arguments.output])


def _by_class(case: ComparedCase, run: str, names: list[str], ignore_index: int | None) -> dict[str, float]:
    from ..outputs.compared_case import panel_confusion, panel_iou

    ious = panel_iou(panel_confusion(case, run, len(names), ignore_index))
    return dict(zip(names, ious.tolist(), strict=True))


def _prediction(image: Path, folder: Path) -> Path:
    """The one file of a run's folder that is called after an image."""
    from ..formats import suffix_of

    if not folder.is_dir():
        raise FileNotFoundError(f"--run: {folder}: found no such folder, expected one of saved predictions")
    stem = image.name.removesuffix(suffix_of(image))
    wanted = {stem, f"{stem}_mask"}
    found = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and path.name.removesuffix(suffix_of(path)) in wanted and path.resolve() != image.resolve()
    )
    if len(found) != 1:
        names = ", ".join(str(path) for path in found[:3]) or "none"
        raise ValueError(
            f"{folder}: found {names}, expected one prediction called {stem}_mask or {stem}, as {image} is"
        )
    return found[0]
