"""PNG masks: grey levels or palette indices."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .label_image import LabelImage, naming

_EXPECTED = "a PNG mask of one grey value or palette index per pixel"
#: Pillow's modes that hold one number per pixel
_ONE_VALUE_MODES = ("1", "L", "P", "I", "I;16", "I;16B", "I;16L", "I;16N")


def describe_png(path: Path) -> LabelImage:
    """Read the header of a PNG file. The values of a palette image are its indices, not its colours;
    a 1-bit mask holds 0 and 1.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: it is not a PNG, has colour or alpha channels, or grey values of 2 or 4 bits.
    """
    from PIL import Image

    with naming(path, _EXPECTED), Image.open(path, formats=["PNG"]) as image:
        if image.mode not in _ONE_VALUE_MODES:
            raise ValueError(
                f"{path}: found an image of mode {image.mode} (several values per pixel), expected {_EXPECTED}"
            )
        if image.tile and image.tile[0].args in ("L;2", "L;4"):
            raise ValueError(
                f"{path}: found grey values of {image.tile[0].args[-1]} bits, which readers stretch to 0 ... 255, expected "
                f"{_EXPECTED} with 1, 8 or 16 bits"
            )
        shape, mode = image.size, image.mode
    return LabelImage(path, "PNG", shape, mode, None, None, "Pillow", lambda: _load(path))


def _load(path: Path) -> np.ndarray:
    from PIL import Image

    with Image.open(path, formats=["PNG"]) as image:
        image.load()
        return np.asarray(image).transpose()
