"""A folder of video frames and class maps as a MONAI data list, divided by sequence: neighbouring frames are near copies."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import naming_files
from ..formats import PICTURE_SUFFIXES, describe_label, suffix_of
from .folder import folder_datalist
from .splits import split_datalist

_GROUP = "{group}"
#: a frame's name up to the last number in it: `patient1_seq4` of `patient1_seq4_0025_l`
_BEFORE_LAST_NUMBER = r"(.+?)[_-]?\d+\D*"


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
        ValueError: a name does not fit the pattern, the pattern does not hold ``{group}`` once, a frame is no picture, or a class
            map has another size than its frame; and what `folder_datalist` raises.
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
    fits = re.compile(_BEFORE_LAST_NUMBER if group_pattern is None else _as_expression(group_pattern))
    items = []
    for item in folder_datalist(root, image, label):
        match = fits.fullmatch(item["case"])
        if match is None:
            expected = "a number in it" if group_pattern is None else f"one like {group_pattern!r}"
            raise ValueError(f"{item['image']}: found a name that tells no sequence, expected {expected}")
        _expect_pictures(item)
        items.append({**item, "group": match[1], "sequence": match[1]})
    return items


def _as_expression(pattern: str) -> str:
    if pattern.count(_GROUP) != 1:
        raise ValueError(f"group_pattern: found {pattern!r}, expected {_GROUP} in it once")
    return re.escape(pattern).replace(re.escape("*"), ".*?").replace(re.escape(_GROUP), "(.+)")


def split_by_group(
    items: Sequence[Mapping[str, Any]], splits: Mapping[str, float | Sequence[str] | str | None], seed: int = 0
) -> dict[str, list[dict[str, Any]]]:
    """Divide a data list into named parts that share no group.

    Args:
        items: data list whose items have a ``"group"``.
        splits: part name -> names of groups, a share of the groups, or None (what is left), see `split_datalist`.
        seed: draws the groups of a share.

    Returns:
        part name -> data list, in the order of ``items``.

    Raises:
        ValueError: see `split_datalist`, of which the cases are the groups here.

    Example:
        >>> frames = [{"case": name, "group": name[0]} for name in ("a1", "a2", "b1", "c1")]
        >>> parts = split_by_group(frames, {"training": None, "validation": 0.3})
        >>> {name: [item["case"] for item in part] for name, part in parts.items()}
        {'training': ['a1', 'a2', 'b1'], 'validation': ['c1']}
    """
    groups = dict.fromkeys(str(item["group"]) for item in items)
    parts = split_datalist([{"case": group} for group in groups], splits, seed)
    part_of = {str(group["case"]): name for name, part in parts.items() for group in part}
    return {name: [dict(item) for item in items if part_of.get(str(item["group"])) == name] for name in splits}


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
