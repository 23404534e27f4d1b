"""PNG masks: grey levels or palette indices."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

from ..errors import naming_files
from .format import Format
from .label_image import LabelImage
from .voxel_stream import MAX_DEFLATE_RATIO

_EXPECTED = "a PNG mask of one grey value or palette index per pixel"
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: Pillow's modes that hold one number per pixel
_ONE_VALUE_MODES = ("1", "L", "P", "I", "I;16", "I;16B", "I;16L", "I;16N")


def describe_png(path: Path) -> LabelImage:
    """Read the header of a PNG file. The values of a palette image are its indices, not its colours;
    a 1-bit mask holds 0 and 1.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: it is not a PNG, has colour or alpha channels, or grey values of 2 or 4 bits.
    """
    # by the format's own class, because Image.open treats more than 179 megapixels as an attack
    from PIL.PngImagePlugin import PngImageFile

    with naming_files(path, f"cannot be read, expected {_EXPECTED}", raises=ValueError), PngImageFile(path) as image:
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
        least = shape[0] * shape[1] // 8 // MAX_DEFLATE_RATIO  # at one bit per pixel
        if path.stat().st_size < least:
            raise ValueError(
                f"{path}: found {path.stat().st_size} bytes, expected at least {least} for the shape {shape} in its header"
            )
    return LabelImage(
        path,
        format="PNG",
        shape=shape,
        dtype=mode,
        affine=None,
        body=None,
        reader="Pillow",
        load=lambda: _load(path),
    )


def _check_chunks(path: Path) -> None:
    """Raise a ValueError unless every chunk has the right checksum and the last one ends the file: Pillow does not check."""
    content = path.read_bytes()
    position, kind = len(_SIGNATURE), b""
    while position < len(content) and kind != b"IEND":
        length = int.from_bytes(content[position : position + 4], "big")
        kind, body = content[position + 4 : position + 8], content[position + 8 : position + 8 + length]
        checksum = content[position + 8 + length : position + 12 + length]
        if len(checksum) < 4 or zlib.crc32(kind + body) != int.from_bytes(checksum, "big"):
            raise ValueError(f"{path}: found a wrong checksum in the chunk {kind!r}: the file is damaged or truncated")
        position += 12 + length
    if kind != b"IEND" or position != len(content):
        raise ValueError(
            f"{path}: found {len(content)} bytes, expected the chunk 'IEND' to end them: the file is damaged"
        )


def _load(path: Path) -> np.ndarray:
    from PIL.PngImagePlugin import PngImageFile

    _check_chunks(path)
    with PngImageFile(path) as image:
        image.load()
        return np.asarray(image).transpose()


def check_png(path: Path, allow_gaps: bool = False) -> None:
    """Raise a ValueError unless a PNG image, grey or in colour, holds all that its header promises."""
    from PIL.PngImagePlugin import PngImageFile

    with naming_files(path, "cannot be read, expected a PNG image", raises=ValueError), PngImageFile(path) as image:
        _check_chunks(path)
        image.load()


FORMAT = Format(
    (".png",),
    describe_png,
    check_scan=check_png,
    readers=(("PNG: grey values, or the indices of a palette image", "Pillow"),),
    is_picture=True,
)
