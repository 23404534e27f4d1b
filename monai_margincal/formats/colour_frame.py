"""One frame in colour, from a picture or a video."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..errors import naming_files
from .video import read_video_frame, video_frame

if TYPE_CHECKING:
    from PIL import Image

#: Pillow's modes that can be given as red, green and blue of 8 bits without a loss of depth
_MODES = ("RGB", "RGBA", "L", "LA", "P", "1")


def colour_frame(path: str | os.PathLike[str], **options: Any) -> Image.Image:
    """Read a frame as red, green and blue of 8 bits.

    Grey pictures and those with a palette are converted, transparency is dropped.

    Args:
        path: a picture, or a frame of a video as `VideoIndex.frame_file` names it.
        options: those of :func:`PIL.Image.open`.

    Raises:
        ValueError: the file is damaged, no picture, or of another depth than 8 bits; the message names it.

    Example:
        >>> import tempfile
        >>> from PIL import Image
        >>> path = tempfile.mkdtemp() + "/frame.png"
        >>> Image.new("L", (6, 4), color=9).save(path)
        >>> colour_frame(path).getpixel((0, 0))
        (9, 9, 9)
    """
    # counting label files imports this room, and most of them are no pictures
    from PIL import Image

    found = video_frame(path)
    if found is not None:
        return Image.fromarray(read_video_frame(*found))
    expected = f"a picture of one of the modes {', '.join(_MODES)}"
    with (
        naming_files(path, f"cannot be read, expected {expected}", raises=ValueError),
        Image.open(path, **options) as picture,
    ):
        if picture.mode not in _MODES:
            raise ValueError(f"{path}: found a picture of the mode {picture.mode}, expected {expected}")
        return picture.convert("RGB")
