"""The voxels of a file in blocks: complete and in order, or an error that names the file."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np
import pytest

from monai_margincal.formats import VoxelBody
from monai_margincal.formats.voxel_stream import BUFFER_BYTES, stream_name, voxel_blocks

VOXELS = np.random.default_rng(0).integers(0, 9, BUFFER_BYTES + 1001).astype(">i2")
PACK = {"raw": bytes, "gzip": gzip.compress, "zlib": zlib.compress}


def body(path: Path, encoding: str, content: bytes, voxels: int = len(VOXELS)) -> VoxelBody:
    """A file of 7 foreign bytes and ``content`` in an encoding; of what is decoded, 3 bytes come before the voxels."""
    path.write_bytes(b"foreign" + content)
    return VoxelBody((path,), 7, encoding, skip=3, dtype=VOXELS.dtype, voxels=voxels)


@pytest.mark.parametrize("encoding", PACK)
def test_all_voxels_in_order(tmp_path: Path, encoding: str) -> None:
    described = body(tmp_path / "voxels", encoding, PACK[encoding](b"abc" + VOXELS.tobytes()))
    blocks = [block.copy() for block in voxel_blocks(described)]
    assert len(blocks) == 3
    assert all(block.dtype == VOXELS.dtype for block in blocks)
    assert np.array_equal(np.concatenate(blocks), VOXELS)
    assert stream_name(described).startswith(f"stream {encoding}")


@pytest.mark.parametrize("encoding", PACK)
@pytest.mark.parametrize(
    ("difference", "message"),
    [(1, r"voxels: found \d+ bytes of voxels, expected \d+: it is truncated"), (-1, "voxels: found more bytes after")],
)
def test_another_number_of_voxels(tmp_path: Path, encoding: str, difference: int, message: str) -> None:
    content = PACK[encoding](b"abc" + VOXELS.tobytes())
    described = body(tmp_path / "voxels", encoding, content, voxels=len(VOXELS) + difference)
    with pytest.raises(ValueError, match=message) as raised:
        list(voxel_blocks(described))
    assert str(raised.value).startswith(str(described.files[0]))


@pytest.mark.parametrize("encoding", ["gzip", "zlib"])
def test_a_wrong_checksum(tmp_path: Path, encoding: str) -> None:
    content = bytearray(PACK[encoding](b"abc" + VOXELS.tobytes()))
    content[-1 if encoding == "zlib" else -6] ^= 1
    described = body(tmp_path / "voxels", encoding, bytes(content))
    with pytest.raises(ValueError, match=r"voxels: cannot be read, expected 525289 voxels of int16: \w+: "):
        list(voxel_blocks(described))


def test_a_missing_file_stays_one(tmp_path: Path) -> None:
    described = body(tmp_path / "voxels", "raw", b"")
    described.files[0].unlink()
    with pytest.raises(FileNotFoundError, match="voxels: no such file, expected an image"):
        list(voxel_blocks(described))
