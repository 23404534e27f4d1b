"""A film as H.264 in an MP4 file, each frame at the time that it has in its source."""

from __future__ import annotations

from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path

import numpy as np
from PIL import Image

from ..extras import require
from ..files import replacing

#: those that PyAV's wheels, or the FFmpeg that it was built with, may have
_ENCODERS = ("libx264", "libopenh264")
#: the colours of high definition, which players expect and older ones assume
_BT709 = 1


def h264_encoder() -> str | None:
    """The name of an encoder of H.264; None if PyAV is not installed or has none.

    Example:
        >>> h264_encoder() in (None, "libx264", "libopenh264")
        True
    """
    try:
        import av
    except ImportError:
        return None
    return next((name for name in _ENCODERS if name in av.codecs_available), None)


class H264Film:
    """An MP4 file of H.264, yuv420p, with the index at its beginning. It appears when it is finished.

    Args:
        path: the file.
        rate: frames per second, which say how long the last frame is shown.
        time_base: times are multiples of it, in seconds.
        width: largest width in pixels, by default that of the frames; larger frames are made smaller. An odd width or height is
            filled up by repeating the last column or row, as the format knows even ones only.

    Raises:
        ImportError: PyAV is not installed.
        ValueError: it has no encoder.
        OSError: the file cannot be written.

    Example:
        >>> import tempfile
        >>> film = H264Film(Path(tempfile.mkdtemp()) / "film.mp4", rate=Fraction(10), time_base=Fraction(1, 10))
        >>> for number in range(3):
        ...     film.append(np.full((15, 16, 3), 80 * number, np.uint8), Fraction(number, 10))
        >>> film.finish()
        >>> film.path.read_bytes()[4:8]
        b'ftyp'
    """

    def __init__(self, path: Path, rate: Fraction, time_base: Fraction, width: int | None = None) -> None:
        av = require("av", extra="video", purpose="writing a film in H.264")
        encoder = h264_encoder()
        if encoder is None:
            raise ValueError(
                f"{path}: found an FFmpeg without an encoder of H.264, expected one of {', '.join(_ENCODERS)}"
            )
        self.path = path
        self.width = width
        self.time_base = time_base
        self._last: tuple[int, Fraction] | None = None
        self._open = ExitStack()
        beside = self._open.enter_context(replacing(path))
        self._container = av.open(str(beside), "w", format="mp4", options={"movflags": "faststart"})
        # with B-frames a film would begin before its first picture
        options = {"bf": "0", "preset": "veryfast", "crf": "20"} if encoder == "libx264" else {}
        self._stream = self._container.add_stream(encoder, rate=rate, options=options)
        self._stream.pix_fmt = "yuv420p"
        self._stream.codec_context.time_base = time_base
        for name in ("color_primaries", "color_trc", "colorspace"):
            setattr(self._stream.codec_context, name, _BT709)

    def append(self, picture: np.ndarray, time: Fraction) -> None:
        """Append a frame.

        Args:
            picture: (height, width, 3), uint8, of the same size for all frames.
            time: when it is shown, in seconds, later than the frame before.
        """
        import av

        if self.width is not None and picture.shape[1] > self.width:
            size = (self.width, max(1, round(picture.shape[0] * self.width / picture.shape[1])))
            picture = np.asarray(Image.fromarray(picture).resize(size))
        height, width = picture.shape[:2]
        picture = np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
        if self._last is None:
            self._stream.height, self._stream.width = picture.shape[:2]
        frame = av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(
            format="yuv420p", dst_colorspace="ITU709", dst_color_range="MPEG"
        )
        frame.pts, frame.time_base = round(time / self.time_base), self.time_base
        self._container.mux(self._stream.encode(frame))
        self._last = frame.pts, time

    def finish(self) -> None:
        """Write the rest, and let the film take the place of an earlier one."""
        with self._open:
            if self._last is not None:
                self._container.mux(self._stream.encode(None))
            self._container.close()
