"""A reader of video frames: three channels of 8 bits, whatever kind of picture the file holds, or from within a video."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from monai.config import PathLike
from monai.data import PILReader
from monai.utils import ensure_tuple

from ..formats.colour_frame import colour_frame


class FrameReader(PILReader):
    """Read a picture for :class:`monai.transforms.LoadImage` as red, green and blue.

    Grey pictures and those with a palette are converted, transparency is dropped. As with :class:`monai.data.PILReader` the first
    axis of the array is the picture's width. A frame of a video is read by its name, ``clip.mp4/000012.png``.

    Raises:
        ValueError: on reading: the file is damaged, no picture, or of another depth than 8 bits; the message names it.

    Example:
        >>> import tempfile
        >>> from PIL import Image
        >>> from monai.transforms import LoadImage
        >>> path = tempfile.mkdtemp() + "/frame.png"
        >>> Image.new("L", (6, 4), color=9).save(path)
        >>> tuple(LoadImage(reader="monai_margincal.transforms.FrameReader", ensure_channel_first=True)(path).shape)
        (3, 6, 4)
    """

    def __init__(self) -> None:
        super().__init__()

    def read(self, data: Sequence[PathLike] | PathLike | np.ndarray, **options: Any) -> Any:
        """Take note of the files: where this fails, MONAI asks its other readers, which take a deep picture as it is."""
        return [(name, options) for name in ensure_tuple(data)]

    def get_data(self, img: Any) -> tuple[np.ndarray, dict]:
        """Read one file, or several that become the channels of one image."""
        return super().get_data([colour_frame(name, **options) for name, options in img])
