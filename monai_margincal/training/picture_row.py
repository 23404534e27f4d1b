"""One picture of a slice three times: as it is, with its true and with its predicted classes in colour."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageColor, ImageDraw, ImageFont

from ..palette import class_colour

__all__ = ["picture_row"]

_OPACITY = 0.6
#: in pixels: a smaller slice is enlarged to the first, a larger one reduced to the second
_SMALLEST, _LARGEST = 320, 640
_GAP = 6
_TEXT = 14


def picture_row(
    plane: np.ndarray, truth: np.ndarray, prediction: np.ndarray, class_names: Sequence[str], title: str
) -> np.ndarray:
    """Draw the three next to each other, with a heading over each and the colours of the classes below.

    Args:
        plane: grey values or red, green and blue from 0 to 1, (1, rows, columns) or (3, rows, columns).
        truth: class ids, (rows, columns); 0 and what has no name is not drawn.
        prediction: likewise.
        class_names: names of the classes by id.
        title: over the slice without classes.

    Returns:
        (height, width, 3), uint8.

    Example:
        >>> picture = picture_row(np.zeros((1, 320, 320)), np.ones((320, 320)), np.zeros((320, 320)), ["other", "lesion"], "a")
        >>> picture.shape, picture[200, 500].tolist()  # six parts of orange
        ((372, 972, 3), [138, 95, 0])
    """
    grey = np.broadcast_to(np.clip(plane, 0, 1), (3, *plane.shape[1:])).transpose(1, 2, 0) * 255
    headings = {title: None, "truth": truth, "prediction": prediction}
    panels = [_sized(grey if mask is None else _coloured(grey, mask, len(class_names))) for mask in headings.values()]
    width, height = panels[0].size
    band = _TEXT + 2 * _GAP
    row = Image.new("RGB", (3 * width + 2 * _GAP, height + 2 * band))
    draw, font = ImageDraw.Draw(row), ImageFont.load_default(_TEXT)
    for number, (heading, panel) in enumerate(zip(headings, panels, strict=True)):
        left = number * (width + _GAP)
        row.paste(panel, (left, band))
        draw.text((left + _GAP, _GAP), _shortened(heading, width, draw, font), "white", font)
    x, y = float(_GAP), height + band + _GAP
    for k, name in list(enumerate(class_names))[1:]:
        draw.rectangle((x, y, x + _TEXT, y + _TEXT), class_colour(k))
        draw.text((x + _TEXT + _GAP, y), name, "white", font)
        x += _TEXT + 4 * _GAP + draw.textlength(name, font)
    return np.asarray(row)


def _coloured(grey: np.ndarray, mask: np.ndarray, classes: int) -> np.ndarray:
    drawn = grey.copy()
    for k in range(1, classes):
        inside = mask == k
        drawn[inside] = (1 - _OPACITY) * grey[inside] + _OPACITY * np.array(ImageColor.getrgb(class_colour(k)))
    return drawn


def _sized(panel: np.ndarray) -> Image.Image:
    image = Image.fromarray(np.rint(panel).astype(np.uint8))
    if max(image.size) > _LARGEST:
        image.thumbnail((_LARGEST, _LARGEST), Image.Resampling.BOX)
        return image
    factor = -(-_SMALLEST // max(image.size))
    # by whole numbers, so that every voxel stays a square
    return image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)


def _shortened(
    text: str, width: int, draw: ImageDraw.ImageDraw, font: ImageFont.FreeTypeFont | ImageFont.ImageFont
) -> str:
    while len(text) > 1 and draw.textlength(text, font) > width - 2 * _GAP:
        text = f"{text[:-2]}…"
    return text
