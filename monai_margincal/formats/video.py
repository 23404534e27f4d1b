"""Video files, frame by frame: when each frame is shown, and its picture, without more than a few pictures in memory.

A frame is named as if the video were a folder of PNGs, ``clip.mp4/000012.png``, so that everything that goes by the names of
files (a data list, a result's name, an error) works for it as for a frame of its own file. Numbers begin at 0, in the order in
which frames are shown.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..extras import require
from .placeholder import refuse_placeholder

#: file name endings of videos
VIDEO_SUFFIXES = (".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm", ".mpg", ".mpeg", ".ts", ".wmv")

_FRAME = re.compile(r"(\d+)\.png")


@dataclass(frozen=True, eq=False)
class VideoIndex:
    """When the frames of a video are shown.

    Attributes:
        path: the file.
        times: int64, (frames,), increasing, in units of ``time_base``.
        time_base: seconds.
        rate: frames per second, on average.
    """

    path: Path
    times: np.ndarray
    time_base: Fraction
    rate: Fraction

    def seconds(self, number: int) -> float:
        """When a frame is shown, by the clock of the file."""
        return float(int(self.times[number]) * self.time_base)

    def frame_file(self, number: int) -> Path:
        """The name of a frame."""
        return self.path / f"{number:06d}.png"


def is_video(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a file whose ending is that of a video."""
    return Path(path).suffix.lower() in VIDEO_SUFFIXES and Path(path).is_file()


def video_frame(path: str | os.PathLike[str]) -> tuple[Path, int] | None:
    """The video and the number of a frame; None for the name of anything else.

    Example:
        >>> video_frame("no/such/clip.mp4/000012.png") is None
        True
    """
    name = Path(path)
    match = _FRAME.fullmatch(name.name)
    return (name.parent, int(match[1])) if match is not None and is_video(name.parent) else None


def video_index(path: Path) -> VideoIndex:
    """Find out when the frames of a video are shown, from what its container says about them; nothing is decoded.

    Args:
        path: the file.

    Returns:
        16 bytes or so per frame, whatever its size.

    Raises:
        ImportError: PyAV is not installed.
        ValueError: the file is damaged, holds no video or less than its header says, or does not say when frames are shown.

    Example:
        >>> import tempfile
        >>> av = require("av", extra="video", purpose="this example")
        >>> path = Path(tempfile.mkdtemp()) / "clip.avi"
        >>> with av.open(str(path), "w") as container:
        ...     stream = container.add_stream("mjpeg", rate=10, width=32, height=32, pix_fmt="yuvj420p")
        ...     for _ in range(3):
        ...         container.mux(stream.encode(av.VideoFrame(32, 32, "yuvj420p")))
        ...     container.mux(stream.encode(None))
        >>> index = video_index(path)
        >>> [index.seconds(number) for number in range(3)], str(index.rate), index.frame_file(2).name
        ([0.0, 0.1, 0.2], '10', '000002.png')
    """
    refuse_placeholder(path)
    return _index(path, _state(path))


@lru_cache(maxsize=4)
def _index(path: Path, state: tuple[int, int]) -> VideoIndex:
    av = _library()
    times: list[int] = []
    try:
        with av.open(str(path)) as container:
            stream = _first_stream(path, container)
            for packet in container.demux(stream):
                if packet.size and not packet.is_discard:
                    times.append(_time(path, packet))
            promised, rate = int(stream.frames), stream.average_rate or stream.guessed_rate
            base = Fraction(stream.time_base)
    except av.error.FFmpegError as error:
        raise _unreadable(path, error) from error
    if len(times) < max(promised, 1):
        raise ValueError(f"{path}: found {len(times)} frames, expected {max(promised, 1)}: is the file complete?")
    shown = np.unique(np.array(times, dtype=np.int64))
    if len(shown) > 1 and not rate:
        rate = (len(shown) - 1) / (int(shown[-1] - shown[0]) * base)
    return VideoIndex(path, shown, base, Fraction(rate or 1))


def read_video_frame(path: Path, number: int) -> np.ndarray:
    """Read one frame of a video, best in ascending order: what lies between it and the frame before has to be decoded as well.

    Args:
        path: the file.
        number: of the frame, from 0.

    Returns:
        (height, width, 3), uint8, red, green and blue.

    Raises:
        ImportError: PyAV is not installed.
        ValueError: the frame cannot be decoded, or builds on one that could not; see also `video_index`. The message names the
            file, the frame and its time.
    """
    return _decoder(path, _state(path), os.getpid()).read(number)


def _state(path: Path) -> tuple[int, int]:
    """Another one if the file has changed."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=1)
def _decoder(path: Path, state: tuple[int, int], process: int) -> _Decoder:
    """One open file per process: a process that was forked must not read on where its parent stands."""
    return _Decoder(video_index(path))


class _Decoder:
    """Reads a video from front to back; one that is asked for an earlier frame begins anew."""

    def __init__(self, index: VideoIndex) -> None:
        self.index = index
        self._last: tuple[int, np.ndarray] | None = None
        #: when a frame that cannot be used is shown -> why
        self._reasons: dict[int, str] = {}
        #: a frame that was decoded before it was asked for
        self._ahead: Any = None
        self._frames: Iterator[Any] = iter(())
        self._position = math.inf

    def read(self, number: int) -> np.ndarray:
        if not 0 <= number < len(self.index.times):
            raise ValueError(f"{self.index.path}: found no frame {number}, expected 0 to {len(self.index.times) - 1}")
        # the picture that was drawn upon is the one that the network has seen, so it is asked for twice
        if self._last is not None and self._last[0] == number:
            return self._last[1]
        wanted = int(self.index.times[number])
        if wanted <= self._position:
            self._open()
        while True:
            frame: Any = self._ahead or next(self._frames, None)
            time = math.inf if frame is None else _time(self.index.path, frame)
            self._position, self._ahead = min(time, wanted), frame if time > wanted else None
            if time < wanted:
                continue
            reason = self._reasons.get(wanted) or ("no picture" if frame is None or time > wanted else None)
            if reason is None and frame.is_corrupt:
                reason = "a damaged picture"
            self._reasons = {late: why for late, why in self._reasons.items() if late > wanted}
            if reason is not None:
                raise self._damaged(number, reason)
            self._last = number, frame.to_ndarray(format="rgb24")
            return self._last[1]

    def _open(self) -> None:
        self._position = -math.inf
        self._reasons, self._ahead = {}, None
        self._frames = self._decoded()

    def _decoded(self) -> Iterator[Any]:
        av, path = _library(), self.index.path
        sound_from = -math.inf
        with av.open(str(path)) as container:
            stream = _first_stream(path, container)
            # decoders hide errors by what was shown before; one thread, so that an error belongs to its packet
            stream.codec_context.options = {"err_detect": "explode"}
            stream.codec_context.thread_count = 1
            for packet in container.demux(stream):
                time = _time(path, packet) if packet.size else None
                if time is not None:
                    if packet.is_keyframe and math.isinf(sound_from):
                        sound_from = min(sound_from, time)
                    if time < sound_from:
                        self._reasons[time] = "a frame that builds on one that cannot be decoded"
                try:
                    yield from packet.decode()
                except av.error.FFmpegError as error:
                    if time is not None:
                        self._reasons.setdefault(time, f"data that cannot be decoded ({error.strerror})")
                    sound_from = math.inf

    def _damaged(self, number: int, found: str) -> ValueError:
        name, seconds = self.index.frame_file(number), self.index.seconds(number)
        return ValueError(f"{name}: frame {number} of the video, at {seconds:.3f} s: found {found}, expected a picture")


def _library() -> Any:
    return require("av", extra="video", purpose="reading and writing videos")


def _first_stream(path: Path, container: Any) -> Any:
    if not container.streams.video:
        raise ValueError(f"{path}: found no video stream, expected one")
    return container.streams.video[0]


def _time(path: Path, shown: Any) -> int:
    """When a packet or frame is shown; containers such as AVI only tell the order of decoding, which is the same there."""
    time = shown.pts if shown.pts is not None else shown.dts
    if time is None:
        raise ValueError(f"{path}: found a frame without a time, expected a time for each")
    return int(time)


def _unreadable(path: Path, error: Any) -> ValueError:
    return ValueError(f"{path}: cannot be read, expected a video: {error.strerror or error}")
