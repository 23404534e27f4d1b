"""The windows of validation and inference, against the patches that training draws."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...findings import Finding
from .configs import switched_off, value_at
from .image_chain import transform_ids

#: transforms that draw patches of one size, and the argument that gives it
_PATCHES = {"RandCropBy": "spatial_size", "RandSpatialCrop": "roi_size", "RandWeightedCrop": "spatial_size"}

#: the size of a patch or window, and where it is written
Size = tuple[str, Sequence[int]]


def check_windows(patches: Sequence[Size], windows: Sequence[Size]) -> list[Finding]:
    """Compare every window that is given with the patches of training.

    Most networks take any size, so another one goes unnoticed; those that pool over what they see lose small objects in it.

    Args:
        patches: from `patch_size`; nothing is compared where there are none.
        windows: from `window_size`.

    Returns:
        a warning for every window of another size.

    Example:
        >>> print(check_windows([("train.json: patch", [64, 64])], [("inference.json: inferer#roi_size", [512, 512])])[0])
        warning: inference.json: inferer#roi_size: found windows of [512, 512], expected [64, 64], as in train.json: patch
    """
    return [
        Finding.in_file("warning", place, f"windows of {list(window)}", f"{list(patch)}, as in {source}")
        for source, patch in patches[:1]
        for place, window in windows
        if list(window) != list(patch)
    ]


def patch_size(parser: Any, place: str) -> list[Size]:
    """The size of the last patches that training draws from the image, and where it is written; nothing if it draws none.

    A patch that is one voxel deep is a slice, and has the size of its plane.
    """
    for step in reversed(transform_ids(parser, "train::preprocessing") if "train::preprocessing" in parser else []):
        name = str(parser[step].get("_target_", "")).rsplit(".", 1)[-1]
        argument = next((value for start, value in _PATCHES.items() if name.startswith(start)), None)
        if argument is None or switched_off(parser, step):
            continue
        size = [int(side) for side in _numbers(value_at(parser, f"{step}::{argument}"))]
        while size and size[-1] == 1:
            size.pop()
        name = re.sub(r"(Dict|D)$", "d", name)
        return [(f"{argument} of {name} in {place}", size)] if size else []
    return []


def window_size(parser: Any, id: str, place: str) -> list[Size]:
    """The size of an inferer's windows, and where it is written; nothing if none is given.

    Without one, `monai_margincal.inferers.VolumeSliceInferer` asks the weights.
    """
    size = _numbers(value_at(parser, f"{id}::roi_size"))
    return [(f"{place}: {id.replace('::', '#')}#roi_size", size)] if size else []


def _numbers(value: Any) -> list[int]:
    if isinstance(value, Mapping | str) or not isinstance(value, Sequence):
        return []
    return [int(side) for side in value] if all(isinstance(side, int) for side in value) else []
