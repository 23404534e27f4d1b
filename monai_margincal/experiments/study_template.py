"""A study of the user's own folder to begin with: short, commented, and ready to run."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, Template

from ..datasets import folder_datalist
from ..extras import require
from ..formats import PICTURE_SUFFIXES, suffix_of
from ..statistics import scan_labels
from ..transforms.nvimgcodec import silence_nvimgcodec

yaml = require("yaml", extra="experiments", purpose="writing a study")

__all__ = ["study_template"]

#: rows and columns of a training sample: no smaller than what the network halves four times, no larger than a CPU is quick with
_SMALLEST, _LARGEST, _MULTIPLE = 32, 192, 16

#: MONAI asks for what its letters stand for
_SIDES = [["L", "R"], ["P", "A"], ["I", "S"]]

_CT = (
    "\n      # CT in Hounsfield units better in place of the last line: "
    "{_target_: ScaleIntensityRanged, keys: image, a_min: -1000, a_max: 400, b_min: 0, b_max: 1, clip: true}"
)
_SLICES = "    slice_axis: 2             # the axial slices of volumes are the samples of a 2-D network\n"


def study_template(
    file: str | os.PathLike[str],
    root: str | os.PathLike[str],
    image: str = "images/{case}.*",
    label: str = "labels/{case}.*",
) -> str:
    """Write the YAML of a study about a folder: its classes, channels and sizes are looked up in its files.

    Args:
        file: where the text is going to lie; a folder beside or below it is named relative to it.
        root: folder of images and labels.
        image: template of the images, see `monai_margincal.datasets.folder_datalist`.
        label: template of the labels.

    Returns:
        the text. Images or labels that have no partner are left out, with a warning and with a key that says so.

    Raises:
        ValueError: there are fewer than three cases, fewer than two classes, or what `folder_datalist` and `scan_labels` refuse.
        FileNotFoundError: see there.

    Example:
        >>> from monai_margincal.samples import sample_dir
        >>> study_template("study.yaml", sample_dir("lung_ct"))
        Traceback (most recent call last):
        ValueError: ...lung_ct: found 2 cases, expected 3 or more: one to train on, one to validate, one to test
    """
    try:
        items, is_whole = folder_datalist(root, image, label), True
    except ValueError:
        # raises the same where it is not about pairs
        items, is_whole = folder_datalist(root, image, label, skip_unpaired=True), False
    if len(items) < 3:
        raise ValueError(
            f"{root}: found {len(items)} cases, expected 3 or more: one to train on, one to validate, one to test"
        )
    scan = scan_labels(items)
    ids = list(scan.counts.ids)
    if len(ids) < 2:
        raise ValueError(f"{root}: found the label values {ids}, expected two or more classes")
    is_picture = suffix_of(Path(items[0]["image"])).lower() in PICTURE_SUFFIXES
    shapes = [case.shape for case in scan.cases if case.shape is not None]
    text = files("monai_margincal.experiments").joinpath("study_template.yaml").read_text(encoding="utf-8")
    place, folder = Path(file).absolute().parent, Path(root).expanduser().absolute()
    return Template(text, undefined=StrictUndefined, keep_trailing_newline=True).render(
        file=os.fspath(file),
        title=json.dumps(f"Which loss for {folder.name}"),
        root=json.dumps("@config_dir" if folder == place else _relative(folder, place)),
        image=json.dumps(image),
        label=json.dumps(label),
        more="" if is_whole else ", skip_unpaired: true",
        cases=len(items),
        test=max(1, len(items) // 4),
        validation=max(1, len(items) // 5),
        names=", ".join(["background", *(f"class {k}" for k in ids[1:])]),
        classes=len(ids),
        channels=_channels(items[0]["image"]),
        steps="\n".join(f"      - {_flow(step)}" for step in _transforms(ids, is_picture=is_picture))
        + _CT * (not is_picture),
        slices=""
        if is_picture
        else "    slice_axis: 2             # the axial slices of volumes are the samples of a 2-D network\n",
        size=[_sample_size([shape[axis] for shape in shapes]) for axis in range(2)],
    )


def _relative(folder: Path, place: Path) -> str:
    """A folder below the file moves along with it, any other stays where it is."""
    if folder.is_relative_to(place):
        return f"$@config_dir + '/{folder.relative_to(place).as_posix()}'"
    return str(folder)


def _transforms(ids: Sequence[int], *, is_picture: bool) -> list[Mapping[str, Any]]:
    steps: list[Mapping[str, Any]] = []
    if not is_picture:
        steps.append({"_target_": "Orientationd", "keys": ["image", "label"], "axcodes": "RAS", "labels": _SIDES})
    if list(ids) != list(range(len(ids))):
        indices = list(range(len(ids)))
        steps.append(
            {"_target_": "MapLabelValued", "keys": "label", "orig_labels": list(ids), "target_labels": indices}
        )
    scale = {"lower": 1, "upper": 99, "b_min": 0, "b_max": 1, "clip": True}
    steps.append({"_target_": "ScaleIntensityRangePercentilesd", "keys": "image", **scale})
    return steps


def _channels(image: str) -> int:
    from monai.transforms import LoadImage

    silence_nvimgcodec()
    return int(LoadImage(image_only=True, ensure_channel_first=True)(image).shape[0])


def _sample_size(lengths: Sequence[int]) -> int:
    typical = -(-int(statistics.median(lengths)) // _MULTIPLE) * _MULTIPLE
    return min(max(typical, _SMALLEST), _LARGEST)


def _flow(content: Any) -> str:
    return str(yaml.safe_dump(content, default_flow_style=True, sort_keys=False, width=1000)).strip()
