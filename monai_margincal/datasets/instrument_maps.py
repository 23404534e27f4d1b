"""One class map per frame from the masks of its instruments, which are drawn one by one and may overlap."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from ..errors import naming_files
from ..files import replacing

InstrumentTask = Literal["binary", "parts", "types"]

#: what a pixel is called that belongs to no class: outside of what the camera sees
VOID = 255
#: grey value in the masks -> class of the task "parts"
PARTS = {10: 1, 20: 2, 30: 3, 40: 4}
#: a frame as it is recorded, width and height, and the camera's picture in it: left, top, width, height
RECORDED_SIZE = (1920, 1080)
CAMERA_BOX = (320, 28, 1280, 1024)

#: raised when the same masks would give another map
_RULES = 1
_MARK = "monai-margincal class map"


def instrument_classes(mask: np.ndarray, instrument: int, task: InstrumentTask) -> np.ndarray:
    """The classes in the mask of one instrument.

    Args:
        mask: (height, width), uint8: 0 outside; 10 shaft, 20 wrist, 30 claspers, 40 probe. For the tasks "binary" and "types" any
            value above 0 is the instrument.
        instrument: its class for the task "types".
        task: "binary" (1 instrument), "parts" (1 shaft, 2 wrist, 3 claspers, 4 probe) or "types".

    Returns:
        (height, width), uint8, 0 outside.

    Raises:
        ValueError: for the task "parts", the mask holds another value.

    Source: the values are those of M. Allan et al., "2017 Robotic Instrument Segmentation Challenge", arXiv:1902.06426.

    Example:
        >>> mask = np.array([[0, 10, 20, 30]], dtype=np.uint8)
        >>> instrument_classes(mask, 6, "parts").tolist(), instrument_classes(mask, 6, "types").tolist()
        ([[0, 1, 2, 3]], [[0, 6, 6, 6]])
    """
    if task != "parts":
        return np.where(mask > 0, 1 if task == "binary" else instrument, 0).astype(np.uint8)
    unknown = set(np.unique(mask).tolist()) - {0, *PARTS}
    if unknown:
        raise ValueError(f"found the values {sorted(unknown)}, expected 0 and {', '.join(map(str, PARTS))}")
    table = np.zeros(256, np.uint8)
    table[list(PARTS)] = list(PARTS.values())
    return table[mask]


def class_map(instruments: Sequence[np.ndarray]) -> np.ndarray:
    """Merge the instruments of a frame into one class map.

    Where instruments overlap, the one that covers fewer pixels of the frame lies on top, so that a small one is never hidden by a
    large one; of two equally large ones, the later in the sequence. (The code released with the paper adds the masks: a shaft on
    a wrist becomes a clasper, and sums above 40 become background.)

    Args:
        instruments: the classes of each instrument, (height, width), uint8, 0 outside.

    Returns:
        (height, width), uint8. A frame of 1920 x 1080 is a recording in which the camera's picture, 1280 x 1024 pixels, begins at
        column 320 of row 28; what lies outside of it is 255 (void).

    Raises:
        ValueError: there is no instrument, or they differ in shape.

    Example:
        >>> shaft_and_wrist = np.array([[1, 1, 1, 2]], dtype=np.uint8)
        >>> needle = np.array([[0, 3, 0, 0]], dtype=np.uint8)
        >>> class_map([needle, shaft_and_wrist])
        array([[1, 3, 1, 2]], dtype=uint8)
    """
    shapes = sorted({instrument.shape for instrument in instruments})
    if len(shapes) != 1:
        raise ValueError(f"instruments of a frame: found the shapes {shapes}, expected one shape")
    merged = np.zeros(shapes[0], np.uint8)
    for instrument in sorted(instruments, key=np.count_nonzero, reverse=True):
        merged = np.where(instrument > 0, instrument, merged)
    if merged.shape[::-1] == RECORDED_SIZE:
        left, top, width, height = CAMERA_BOX
        outside = np.ones(merged.shape, bool)
        outside[top : top + height, left : left + width] = False
        merged[outside] = VOID
    return merged


def write_class_map(path: Path, frame: Path, masks: Mapping[Path, int], task: InstrumentTask) -> bool:
    """Merge the mask files of one frame and save the map as a PNG of grey values, unless that has been done before.

    The map carries a mark that says from which files it was made (by size and time of change) and by which rule.

    Args:
        path: the map; its folder is made.
        frame: the frame's picture; its size is compared.
        masks: the mask of each instrument, grey or with three equal channels -> the instrument's class for the task "types".
        task: see `instrument_classes`.

    Returns:
        whether it was written; False where it had been.

    Raises:
        FileExistsError: ``path`` exists and is not the map of these masks; it is left as it is.
        ValueError: a mask or the frame cannot be read, they differ in size, or a value is not expected; the message names the
            file.
    """
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    mark = _mark(masks, task)
    if path.exists():
        if _mark_of(path) != mark:
            raise FileExistsError(
                f"{path} exists and is not overwritten: found a file that is not the map of {', '.join(map(str, masks))}, "
                "expected none; remove it, or name another folder of maps"
            )
        return False
    with naming_files(frame, "cannot be read, expected a picture", raises=ValueError), Image.open(frame) as picture:
        size = picture.size
    instruments = []
    for mask, instrument in masks.items():
        with naming_files(mask, raises=ValueError):
            instruments.append(instrument_classes(_read_mask(mask), instrument, task))
        found = instruments[-1].shape[::-1]
        if found != size:
            raise ValueError(
                f"{mask}: found {' x '.join(map(str, found))} pixels, expected {size[0]} x {size[1]} as in {frame}"
            )
    info = PngInfo()
    info.add_text(_MARK, mark)
    with replacing(path) as beside:
        Image.fromarray(class_map(instruments)).save(beside, pnginfo=info)
    return True


def _read_mask(path: Path) -> np.ndarray:
    from PIL import Image

    with naming_files(path, "cannot be read, expected a mask", raises=ValueError), Image.open(path) as picture:
        values = np.asarray(picture)
    if values.ndim == 3 and values.shape[2] >= 3 and bool((values[..., :3] == values[..., :1]).all()):
        values = values[..., 0]
    if values.ndim != 2 or values.dtype not in (np.uint8, np.bool_):
        raise ValueError(
            f"{path}: found values of the shape {values.shape} and type {values.dtype}, expected 8-bit grey values"
        )
    return values.astype(np.uint8)


def _mark(masks: Mapping[Path, int], task: InstrumentTask) -> str:
    sources = [
        (mask.parent.name, mask.name, status.st_size, status.st_mtime_ns, instrument)
        for mask, instrument in masks.items()
        for status in [mask.stat()]
    ]
    return hashlib.sha256(json.dumps([_RULES, task, sources]).encode()).hexdigest()


def _mark_of(path: Path) -> str | None:
    from PIL import Image

    try:
        with Image.open(path) as picture:
            return picture.info.get(_MARK)
    except OSError:  # not a picture at all
        return None
