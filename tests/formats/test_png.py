"""PNG masks: one number per pixel, counted as it was drawn."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from label_files import LABEL, unique
from PIL import Image

from monai_margincal.counting.label_file import count_file


@pytest.mark.parametrize("mode", ["1", "L", "P", "I;16"])
def test_png_modes(tmp_path: Path, mode: str) -> None:
    array = LABEL[:, :, 0] % 2 if mode == "1" else LABEL[:, :, 0]
    image = Image.fromarray(array.astype({"1": bool, "I;16": np.uint16}.get(mode, np.uint8)))
    if mode == "P":
        image.putpalette([0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255])
    image.save(tmp_path / "mask.png")
    assert count_file(tmp_path / "mask.png").values == unique(array)


def test_png_mask_of_0_and_255_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "mask.png"
    Image.fromarray(np.array([[0, 255], [255, 0]], np.uint8)).save(path)
    with pytest.raises(
        ValueError, match=r"mask\.png: found the label value\(s\) 255 \(2 voxels\) besides 0.*drawn with 0 and 255"
    ):
        count_file(path, ids=[0, 1])
    assert count_file(path, ids=[0, 255]).values == {0: 2, 255: 2}


def test_png_grey_of_two_bits_is_refused(tmp_path: Path) -> None:
    """Readers stretch 0, 1, 2, 3 to 0, 85, 170, 255: neither is surely what was drawn."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 4, 1, 2, 0, 0, 0, 0)
    pixels = chunk(b"IDAT", zlib.compress(b"\0\x1b"))
    path = tmp_path / "mask.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + pixels + chunk(b"IEND", b""))
    with pytest.raises(ValueError, match=r"mask\.png: found grey values of 2 bits"):
        count_file(path)


def test_damaged_png_is_refused(tmp_path: Path) -> None:
    """Pillow reads over a wrong checksum of the pixels; here it is looked at."""
    path = tmp_path / "mask.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 5, (40, 50)).astype(np.uint8)).save(path)
    content = path.read_bytes()
    for damaged in (
        content[:-1],
        content[:-12],
        content + b"\0",
        content[:200] + bytes([content[200] ^ 4]) + content[201:],
    ):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"mask\.png: (found|cannot be read)"):
            count_file(path)


@pytest.mark.filterwarnings("error")
def test_a_png_of_more_pixels_than_pillow_opens(tmp_path: Path) -> None:
    """A whole slide at 14,000 x 14,000: Pillow's limit is 179 megapixels."""
    path = tmp_path / "mask.png"
    array = np.zeros((14000, 14000), np.uint8)
    array[5:9, 3:10] = 1
    Image.fromarray(array).save(path, compress_level=1)
    assert count_file(path, ids=[0, 1]).values == {0: 14000**2 - 28, 1: 28}


def test_a_png_that_claims_more_pixels_than_it_can_hold(tmp_path: Path) -> None:
    path = tmp_path / "mask.png"
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(path)
    content = bytearray(path.read_bytes())
    content[16:24] = struct.pack(">II", 100_000, 100_000)
    content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"mask\.png: found \d+ bytes, expected at least 1201923 for the shape"):
        count_file(path)
