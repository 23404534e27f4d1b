"""A picture of a frame with its classes in colour, and what the colours mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageColor, ImageDraw, ImageFont

from ...datasets.case_files import scan_of
from ...files import replacing
from ...palette import class_colour
from ..kind import ScanFile
from .frame_mask import rows_of

#: how much of a class's colour lies over the frame
_OPACITY = 0.5


class FrameOverlay(ScanFile):
    """``NAME_overlay.png``: the frame as it is on disk, its classes in colour over it, and what the colours mean.

    Args:
        destination: where the results go.
        postfix: what is appended to the frame's name, in place of "overlay".
    """

    kind = "frame_overlay"
    postfix = "overlay"
    ending = ".png"

    def save(self, items: Mapping[Any, Any], key: str) -> None:
        """Draw the picture."""
        mask = items[key]
        with Image.open(scan_of(mask.meta)) as picture:
            frame = np.asarray(picture.convert("RGB"))
        drawn = frame_overlay(frame, rows_of(mask), self.destination.class_names)
        with replacing(self.path(mask.meta)) as beside:
            Image.fromarray(drawn).save(beside)


def frame_overlay(frame: np.ndarray, mask: np.ndarray, class_names: Sequence[str]) -> np.ndarray:
    """Draw classes over a frame, with a legend of those that are in it.

    Args:
        frame: (height, width, 3), uint8.
        mask: class ids, (height, width); 0 is not drawn.
        class_names: names of the classes by id.

    Returns:
        (height, width, 3), uint8.

    Raises:
        ValueError: the mask has another size than the frame, or holds a class without a name.

    Example:
        >>> drawn = frame_overlay(np.zeros((40, 60, 3), np.uint8), np.eye(40, 60, dtype=np.uint8), ["background", "tool"])
        >>> drawn[39, 39].tolist(), drawn[39, 0].tolist()  # half of orange; nothing
        ([115, 80, 0], [0, 0, 0])
    """
    if mask.shape != frame.shape[:2]:
        raise ValueError(f"class map: found the shape {mask.shape}, expected {frame.shape[:2]}, that of the frame")
    present = [int(index) for index in np.unique(mask) if index > 0]
    if present and present[-1] >= len(class_names):
        raise ValueError(f"class map: found class {present[-1]}, expected one of {list(class_names)}")
    colours = np.zeros((max([0, *present]) + 1, 3))
    for index in present:
        colours[index] = ImageColor.getrgb(class_colour(index))
    opacity = np.where(mask > 0, _OPACITY, 0.0)[..., None]
    drawn = Image.fromarray(np.rint(frame * (1 - opacity) + colours[mask] * opacity).astype(np.uint8))
    _draw_legend(drawn, [(class_names[index], class_colour(index)) for index in present])
    return np.asarray(drawn)


def _draw_legend(picture: Image.Image, entries: Sequence[tuple[str, str]]) -> None:
    size = max(10, picture.height // 40)
    font, draw = ImageFont.load_default(size), ImageDraw.Draw(picture)
    for row, (name, colour) in enumerate(entries):
        top, left = size // 2 + row * (size + size // 2), size // 2
        right = left + 2 * size + draw.textlength(name, font)
        # a dark ground keeps the text readable on bright tissue
        draw.rectangle((left, top, right, top + size + size // 4), fill="black")
        draw.rectangle((left, top, left + size, top + size + size // 4), fill=colour)
        draw.text((left + 1.5 * size, top), name, fill="white", font=font)
