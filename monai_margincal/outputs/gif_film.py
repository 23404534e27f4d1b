"""A film as a GIF that grows frame by frame: it can be watched after every frame, and its length costs no memory."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
from PIL import GifImagePlugin, Image

from ..files import replacing

#: the byte that ends a GIF
_END = b";"
#: what stands before the flags and the time of a frame
_CONTROL = b"!\xf9\x04"
#: largest width, where nothing else is asked for: a GIF has no compression that deserves the name
_WIDTH = 640


class GifFilm:
    """A GIF; it takes the place of an earlier file when its first frame is there.

    Args:
        path: the file.
        rate: frames per second, which say how long the last frame is shown.
        width: largest width in pixels, by default 640; larger frames are made smaller.

    Example:
        >>> import tempfile
        >>> film = GifFilm(Path(tempfile.mkdtemp()) / "film.gif", rate=Fraction(10))
        >>> for number in range(3):
        ...     film.append(np.full((8, 8, 3), 80 * number, np.uint8), Fraction(number, 10))
        >>> Image.open(film.path).n_frames
        3
    """

    def __init__(self, path: Path, rate: Fraction, width: int | None = None) -> None:
        self.path = path
        self.rate = rate
        self.width = width or _WIDTH
        #: of the last frame: the hundredth of a second in which it appears, and where in the file stands how long it stays
        self._last: tuple[int, int] | None = None

    def append(self, picture: np.ndarray, time: Fraction) -> None:
        """Append a frame.

        Args:
            picture: (height, width, 3), uint8, of the same size for all frames.
            time: when it is shown, in seconds.
        """
        drawn = Image.fromarray(picture)
        if drawn.width > self.width:
            drawn = drawn.resize((self.width, max(1, round(drawn.height * self.width / drawn.width))))
        # the 256 colours that are best for this frame
        drawn = drawn.quantize(256, dither=Image.Dither.NONE)
        # a GIF counts in hundredths of a second: rounding the times, not the durations, carries the rest on
        begin, end = round(100 * time), round(100 * (time + 1 / self.rate))
        if self._last is None:
            with replacing(self.path) as beside:
                drawn.save(beside, "GIF", duration=10 * (end - begin), loop=0)
                self._last = begin, beside.read_bytes().index(_CONTROL)
            return
        blocks = b"".join(GifImagePlugin.getdata(drawn, duration=10 * (end - begin), include_color_table=True))
        with self.path.open("r+b") as film:
            earlier, place = self._last
            # until now it was the last
            film.seek(place + len(_CONTROL) + 1)
            film.write((begin - earlier).to_bytes(2, "little"))
            # over the end, which comes again behind the frame
            at = film.seek(-len(_END), 2)
            film.write(blocks + _END)
        self._last = begin, at + blocks.index(_CONTROL)

    def finish(self) -> None:
        """The film is complete after every frame."""
