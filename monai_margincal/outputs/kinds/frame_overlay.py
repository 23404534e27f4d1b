"""A picture of a frame with its classes in colour, and what the colours mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageColor, ImageDraw, ImageFont

from ...datasets.case_files import scan_of
from ...files import replacing
from ...formats.colour_frame import colour_frame
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
        frame = np.asarray(colour_frame(scan_of(mask.meta)))
        drawn = frame_overlay(frame, rows_of(mask), self.destination.class_names)
        with replacing(self.path(mask.meta)) as beside:
            Image.fromarray(drawn).save(beside)


def frame_overlay(
    frame: np.ndarray, mask: np.ndarray, class_names: Sequence[str], caption: str | None = None
) -> np.ndarray:
    """Draw classes over a frame, with a legend.

    Args:
        frame: (height, width, 3), uint8.
        mask: class ids, (height, width); 0 is not drawn.
        class_names: names of the classes by id.
        caption: a line at the bottom, such as the time of the frame in its film. With it the legend names all classes, so that
            it stands still from frame to frame; without it those in the frame.

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
    colours = np.zeros((len(class_names), 3))
    colours[1:] = [ImageColor.getrgb(class_colour(index)) for index in range(1, len(class_names))]
    inside, blended = mask > 0, frame.copy()
    blended[inside] = np.rint(frame[inside] * (1 - _OPACITY) + colours[mask[inside]] * _OPACITY).astype(np.uint8)
    drawn = Image.fromarray(blended)
    size = max(10, drawn.height // 40)
    named = range(1, len(class_names)) if caption else present
    for row, index in enumerate(named):
        top = size // 2 + row * (size + size // 2)
        _draw_line(drawn, top, class_names[index], size, colour=class_colour(index))
    if caption:
        _draw_line(drawn, drawn.height - 2 * size, caption, size)
    return np.asarray(drawn)


def _draw_line(picture: Image.Image, top: int, text: str, size: int, colour: str | None = None) -> None:
    font, draw = ImageFont.load_default(size), ImageDraw.Draw(picture)
    left, bottom = size // 2, top + size + size // 4
    begin = left + (1.5 * size if colour else 0.5 * size)
    # a dark ground keeps the text readable on bright tissue
    draw.rectangle((left, top, begin + draw.textlength(text, font) + size // 2, bottom), fill="black")
    if colour:
        draw.rectangle((left, top, left + size, bottom), fill=colour)
    draw.text((begin, top), text, fill="white", font=font)
