"""Small videos of real frames, written with PyAV, and videos read back at the level of the container."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from PIL import Image

from monai_margincal.samples import sample_dir

#: milliseconds at which the frames of `write_video` are shown where nothing else is asked for: uneven, as phones record
TIMES = (0, 40, 90, 120, 200, 230, 310, 340, 400, 420, 480, 560)


def moving_frames(number: int, name: str = "larynx2_0122", size: tuple[int, int] = (128, 96)) -> list[np.ndarray]:
    """A shipped frame that moves to the right; the two left columns of blocks tell the number, so that no order is mistaken."""
    with Image.open(Path(sample_dir("instruments"), "images", f"{name}.png")) as picture:
        still = np.asarray(picture.convert("RGB").resize(size))
    frames = []
    for index in range(number):
        frame = np.roll(still, 3 * index, axis=1).copy()
        frame[:16, :16], frame[16:32, :16] = 15 * (index % 16) + 8, 15 * (index // 16 % 16) + 8
        frames.append(frame)
    return frames


def number_in(frame: np.ndarray) -> int:
    """The number that `moving_frames` has written into a frame of (height, width, 3)."""
    low, high = (round((float(block[4:12, 4:12].mean()) - 8) / 15) for block in (frame[:16, :16], frame[16:32, :16]))
    return low + 16 * high


def write_video(path: Path, frames: list[np.ndarray], times=TIMES, codec: str = "libx264", **options: str) -> Path:
    """Write frames (height, width, 3) that are shown at these milliseconds, every fourth a key frame."""
    height, width = frames[0].shape[:2]
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=25)
        stream.width, stream.height = width, height
        stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        if codec != "mjpeg":
            stream.codec_context.gop_size = 4
            stream.codec_context.time_base = Fraction(1, 1000)
            stream.options = {"crf": "10", **options}
        base = Fraction(1, 25) if codec == "mjpeg" else Fraction(1, 1000)
        for time, picture in zip(times, frames, strict=True):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = round(Fraction(time, 1000) / base), base
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def times_in(path: Path) -> list[float]:
    """When the frames of a video are shown, in seconds, by its container; nothing is decoded."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        return sorted(float(packet.pts * stream.time_base) for packet in container.demux(stream) if packet.size)


def damage(path: Path, target: Path, number: int) -> Path:
    """A copy of a video in which the packet of one frame, in the order in which they are shown, holds other bytes."""
    content = bytearray(path.read_bytes())
    with av.open(str(path)) as container:
        packets = sorted((packet.pts, packet.pos, packet.size) for packet in container.demux(video=0) if packet.size)
    _, place, size = packets[number]
    content[place + 6 : place + size] = bytes(37 * index % 251 for index in range(size - 6))
    target.write_bytes(content)
    return target
