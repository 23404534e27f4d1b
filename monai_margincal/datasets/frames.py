"""A folder of video frames and class maps as a MONAI data list, divided by sequence: neighbouring frames are near copies."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from ..errors import naming_files
from ..formats import PICTURE_SUFFIXES, describe_label, suffix_of
from .folder import folder_datalist

#: a frame's name up to the last number in it: `patient1_seq4` of `patient1_seq4_0025_l`
_BEFORE_LAST_NUMBER = re.compile(r"(.+?)[_-]?\d+\D*")


def frames_datalist(
    root: str | os.PathLike[str],
    image: str = "images/{case}.*",
    label: str | None = "labels/{case}.*",
    group_pattern: str | None = None,
) -> list[dict[str, str]]:
    """List the frames of a folder with their class maps and the sequence that each belongs to.

    Args:
        root: the data set's folder.
        image: template of the frames, see `folder_datalist`.
        label: template of the class maps, pictures of the same names and sizes, or None for frames without.
        group_pattern: what the names look like: ``{group}`` stands for the sequence, ``*`` for anything. By default the sequence
            is what stands before the last number: ``patient1_seq4`` of ``patient1_seq4_0025_l``.

    Returns:
        one ``{"image": path, "label": path, "case": name, "group": sequence, "sequence": sequence}`` per frame, in the order of
        the names (no ``"label"`` if ``label`` is None). Frames of a group belong on one side of a split; scores are given by
        sequence.

    Raises:
        ValueError: a name does not tell a sequence, a frame is no picture, or a class map has another size than its frame; and
            what `folder_datalist` raises.
        FileNotFoundError: see `folder_datalist`.

    Example:
        >>> import tempfile
        >>> from PIL import Image
        >>> root = Path(tempfile.mkdtemp())
        >>> for name in ("liver_0001", "liver_0002", "spleen_0001"):
        ...     Image.new("RGB", (8, 8)).save(root / f"{name}.png")
        >>> [item["group"] for item in frames_datalist(root, "{case}.png", label=None)]
        ['liver', 'liver', 'spleen']
    """
    items = folder_datalist(root, image, label, group_pattern=group_pattern)
    for item in items:
        _expect_pictures(item)
    return [{**item, "group": sequence, "sequence": sequence} for item in items for sequence in [_sequence(item)]]


def _sequence(item: Mapping[str, str]) -> str:
    if "group" in item:
        return item["group"]
    match = _BEFORE_LAST_NUMBER.fullmatch(item["case"])
    if match is None:
        raise ValueError(f"{item['image']}: found a name that tells no sequence, expected a number in it")
    return match[1]


def _expect_pictures(item: Mapping[str, str]) -> None:
    from PIL import Image

    frame = Path(item["image"])
    if suffix_of(frame).lower() not in PICTURE_SUFFIXES:
        raise ValueError(f"{frame}: found no picture, expected one of {', '.join(PICTURE_SUFFIXES)}")
    with naming_files(frame, "cannot be read, expected a picture", raises=ValueError), Image.open(frame) as picture:
        size = picture.size
    if "label" in item and (found := describe_label(Path(item["label"])).shape) != size:
        raise ValueError(
            f"{item['label']}: found {' x '.join(map(str, found))} pixels, expected {size[0]} x {size[1]} as in {frame}"
        )
