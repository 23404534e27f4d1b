"""A film of the frames with their classes in colour: at most a few pictures in memory, however long it gets."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ...datasets.case_files import case_file, scan_of
from ...extras import install_command, require
from ...formats.colour_frame import colour_frame
from ...formats.video import video_frame, video_index
from ..gif_film import GifFilm
from ..h264_film import H264Film, h264_encoder
from ..kind import Destination, Output
from .frame_mask import rows_of
from .frame_overlay import frame_overlay

_logger = logging.getLogger(__name__)

#: format -> ending
_ENDINGS = {"h264": ".mp4", "gif": ".gif"}


@dataclass
class _OpenFilm:
    writer: GifFilm | H264Film
    shape: tuple[int, ...]
    frames: int = 0


class FrameFilm(Output):
    """``film.mp4``, or ``CLIP_film.mp4`` for each video: the frames in their order, each as `frame_overlay` draws it.

    On each frame stand its number, its time and the frames per second. The frames of a video keep the times that they have in
    it, also where these are uneven. Where there is no encoder of H.264 the film is a GIF. A run begins a new film, in place of
    that of an earlier run. A frame that fails is left out; in a video the one before it is shown for longer.

    Args:
        destination: where the results go.
        format: "h264", "gif", or "auto" for H.264 where an encoder of it is installed and GIF elsewhere.
        fps: frames per second of frames that are files of their own; players show at most 50 of a GIF.
        width: largest width in pixels, by default 640 for a GIF and that of the frames for H.264.

    Raises:
        ImportError: ``format`` is "h264" and PyAV is not installed.
        ValueError: ``fps`` is not above 0, or above 50 for a GIF, ``width`` is below 1 or ``format`` unknown; when a frame is
            saved: its size is not that of the first.
    """

    kind = "frame_film"

    def __init__(
        self,
        destination: Destination,
        format: Literal["auto", "h264", "gif"] = "auto",
        fps: float = 25.0,
        width: int | None = None,
    ) -> None:
        super().__init__(destination)
        if format not in ("auto", *_ENDINGS):
            raise ValueError(f"format: found {format!r}, expected 'auto', 'h264' or 'gif'")
        if format == "h264":
            require("av", extra="video", purpose="writing a film in H.264")
        self.format = format if format != "auto" else "h264" if h264_encoder() else "gif"
        if format == "auto" and self.format == "gif":
            _logger.warning("no encoder of H.264, the film will be a GIF: %s", install_command("video"))
        most = 50 if self.format == "gif" else 1000
        if not 0 < fps <= most:
            raise ValueError(f"fps: found {fps}, expected more than 0 and at most {most}")
        if width is not None and width < 1:
            raise ValueError(f"width: found {width}, expected 1 or more")
        self.fps = Fraction(fps).limit_denominator(1001)
        self.width = width
        #: the film of the frames that are files, and that of the present video
        self._open: dict[Path, _OpenFilm] = {}

    def save(self, items: Mapping[Any, Any], key: str) -> None:
        """Append the frame."""
        mask = items[key]
        scan = scan_of(mask.meta)
        frame = np.asarray(colour_frame(scan))
        in_video = video_frame(scan)
        path = self._path(in_video[0] if in_video else None)
        if in_video:
            self._finish(self._open.keys() - {path, self._path(None)})
        film = self._open.get(path)
        if in_video:
            index, number = video_index(in_video[0]), in_video[1]
            rate, base, time = index.rate, index.time_base, int(index.times[number]) * index.time_base
        else:
            number, rate, base = film.frames if film else 0, self.fps, 1 / self.fps
            time = number * base
        if film is not None and frame.shape != film.shape:
            found, expected = (f"{shape[1]} x {shape[0]}" for shape in (frame.shape, film.shape))
            raise ValueError(f"{scan}: found a frame of {found} pixels in a film of {expected}, expected the same size")
        caption = f"frame {number}   {_clock(time)}   {float(rate):.4g} fps"
        drawn = frame_overlay(frame, rows_of(mask), self.destination.class_names, caption)
        if film is None:
            is_gif = self.format == "gif"
            writer = GifFilm(path, rate, self.width) if is_gif else H264Film(path, rate, base, self.width)
            film = self._open[path] = _OpenFilm(writer, frame.shape)
        film.writer.append(drawn, time)
        film.frames += 1

    def finish(self) -> None:
        """Complete the films."""
        self._finish(set(self._open))

    def _finish(self, paths: AbstractSet[Path]) -> None:
        for path in paths:
            self._open.pop(path).writer.finish()

    @classmethod
    def is_own(cls, name: str) -> bool:
        """Whether a file's name is that of a film."""
        return any(name == f"film{ending}" or name.endswith(f"_film{ending}") for ending in _ENDINGS.values())

    def _path(self, video: Path | None) -> Path:
        place, ending = self.destination, _ENDINGS[self.format]
        if video is None:
            return Path(place.output_dir) / f"film{ending}"
        meta = {"filename_or_obj": str(video)}
        return case_file(meta, place.output_dir, "film", ending, data_root_dir=place.data_root_dir)


def _clock(time: Fraction) -> str:
    """Hours, minutes and seconds."""
    thousandths = round(1000 * time)
    hours, rest = divmod(thousandths, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    return f"{hours}:{minutes:02d}:{rest // 1000:02d}.{rest % 1000:03d}"
