"""A film of the frames with their classes in colour: a GIF that grows frame by frame, so that its length costs no memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import GifImagePlugin, Image

from ...datasets.case_files import scan_of
from ...files import replacing
from ..kind import Destination, Output
from .frame_mask import rows_of
from .frame_overlay import frame_overlay

#: the byte that ends a GIF
_END = b";"


class FrameFilm(Output):
    """``film.gif``: the frames in the order of the run, each as `frame_overlay` draws it; it can be watched after every frame.

    A run begins a new film, in place of that of an earlier run. A frame that fails is left out.

    Args:
        destination: where the results go.
        file: the film; a relative path begins at the folder of all results.
        fps: frames per second; players show at most 50.
        width: largest width in pixels; larger frames are made smaller.

    Raises:
        ValueError: ``fps`` is not above 0 and at most 50, or ``width`` is below 1; when a frame is saved: its size is not that of
            the first.
    """

    kind = "frame_film"

    def __init__(self, destination: Destination, file: str = "film.gif", fps: float = 25.0, width: int = 640) -> None:
        super().__init__(destination)
        if not 0 < fps <= 50:
            raise ValueError(f"fps: found {fps}, expected more than 0 and at most 50")
        if width < 1:
            raise ValueError(f"width: found {width}, expected 1 or more")
        self.path = Path(destination.output_dir) / file
        self.fps = fps
        self.width = width
        self._size: tuple[int, int] | None = None
        self._shown = 0

    def save(self, items: Mapping[Any, Any], key: str) -> None:
        """Append the frame."""
        mask = items[key]
        scan = scan_of(mask.meta)
        with Image.open(scan) as picture:
            frame = np.asarray(picture.convert("RGB"))
        drawn = Image.fromarray(frame_overlay(frame, rows_of(mask), self.destination.class_names))
        if drawn.width > self.width:
            drawn = drawn.resize((self.width, max(1, round(drawn.height * self.width / drawn.width))))
        if self._size is None:
            self._size = drawn.size
            self._begin(drawn)
        elif drawn.size == self._size:
            self._append(drawn)
        else:
            found, expected = (" x ".join(map(str, size)) for size in (drawn.size, self._size))
            raise ValueError(f"{scan}: found a frame of {found} pixels in a film of {expected}, expected the same size")

    def _begin(self, drawn: Image.Image) -> None:
        with replacing(self.path) as beside:
            _coloured(drawn).save(beside, "GIF", duration=self._duration(), loop=0)

    def _append(self, drawn: Image.Image) -> None:
        blocks = GifImagePlugin.getdata(_coloured(drawn), duration=self._duration(), include_color_table=True)
        with self.path.open("r+b") as film:
            # over the end, which comes again behind the frame
            film.seek(-len(_END), 2)
            film.write(b"".join(blocks) + _END)

    def _duration(self) -> int:
        """Milliseconds of the next frame: a GIF counts in hundredths of a second, so that the rest is carried on."""
        begin, end = (round(100 * number / self.fps) for number in (self._shown, self._shown + 1))
        self._shown += 1
        return 10 * (end - begin)


def _coloured(drawn: Image.Image) -> Image.Image:
    """With the 256 colours that are best for this frame."""
    return drawn.quantize(256, dither=Image.Dither.NONE)
