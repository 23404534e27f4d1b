"""The voxels of a file, decoded block by block into one reused buffer."""

from __future__ import annotations

import bz2
import io
import threading
import zlib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import naming_files
from .label_image import VoxelBody
from .placeholder import refuse_placeholder

try:
    from isal import igzip, isal_zlib

    #: which library decodes deflate streams
    INFLATE = "isal"
    _gzip_file: Any = igzip.IGzipFile
    _zlib_decoder: Any = isal_zlib.decompressobj
except ImportError:
    import gzip

    INFLATE = "zlib"
    _gzip_file = gzip.GzipFile
    _zlib_decoder = zlib.decompressobj

#: deflate cannot compress better than this; a header that claims more lies
MAX_DEFLATE_RATIO = 1040
#: Small enough to stay in the processor's second-level cache until it is used.
BUFFER_BYTES = 1 << 19


def voxel_blocks(body: VoxelBody) -> Generator[np.ndarray, None, None]:
    """Decode all voxels of a file block by block; the memory used does not depend on how many there are.

    Args:
        body: where the voxels are.

    Yields:
        (n,) of ``body.dtype``, in the order of the file. A thread's blocks share one buffer: each is valid until the next.

    Raises:
        FileNotFoundError: the file with the voxels does not exist.
        ValueError: it ends early, goes on after the last voxel, or its checksum is wrong; the message names it.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> path = Path(tempfile.mkdtemp()) / "voxels.raw"
        >>> _ = path.write_bytes(b"header" + bytes([0, 1, 1, 2]))
        >>> body = VoxelBody((path,), start=6, encoding="raw", skip=0, dtype=np.dtype(np.uint8), voxels=4)
        >>> [block.tolist() for block in voxel_blocks(body)]
        [[0, 1, 1, 2]]
    """
    voxels = body.voxels // len(body.files)
    expected = f"{voxels} voxels of {body.dtype.name}"
    itemsize = body.dtype.itemsize
    for path in body.files:
        with (
            naming_files(path, f"cannot be read, expected {expected}", raises=ValueError),
            _opened(path) as file,
        ):
            file.seek(body.start)
            if body.encoding == "text":
                yield _numbers(path, file.read(), body.dtype, voxels)
                continue
            stream = _decoded(file, body.encoding)
            _skip(stream, body.skip, path)
            total = voxels * itemsize
            found = 0
            for block in _decode(stream, total):
                yield block[: len(block) - len(block) % itemsize].view(body.dtype)
                found += len(block)
            if found < total:
                raise ValueError(f"{path}: found {found} bytes of voxels, expected {total}: it is truncated")
            # reading on to the end also checks the checksum of a compressed body
            if stream.read(1):
                raise ValueError(
                    f"{path}: found more bytes after the last voxel, expected {expected}: the header does not fit the file"
                )


def load_voxels(body: VoxelBody, shape: tuple[int, ...]) -> np.ndarray:
    """All voxels, the fastest axis first; errors as for `voxel_blocks`."""
    voxels = np.empty(body.voxels, body.dtype.newbyteorder("="))
    position = 0
    for block in voxel_blocks(body):
        voxels[position : position + len(block)] = block
        position += len(block)
    return voxels.reshape(shape, order="F")


def check_voxels(body: VoxelBody) -> None:
    """Compare what the files hold with what the header promises; nothing is kept. Errors as for `voxel_blocks`."""
    if body.encoding != "raw":
        for _ in voxel_blocks(body):
            pass
        return
    each = body.voxels // len(body.files) * body.dtype.itemsize
    for path in body.files:
        with naming_files(path, f"cannot be read, expected {each} bytes of voxels", raises=ValueError):
            refuse_placeholder(path)
            found = path.stat().st_size - body.start - body.skip
        if found != each:
            rest = "it is truncated" if found < each else "the header does not fit the file"
            raise ValueError(f"{path}: found {found} bytes of voxels, expected {each}: {rest}")


def stream_name(body: VoxelBody) -> str:
    """How the voxels are read, for example ``"stream gzip (isal)"``."""
    return f"stream {body.encoding}" + (f" ({INFLATE})" if body.encoding in ("gzip", "zlib") else "")


_kept = threading.local()


def _buffer() -> np.ndarray:
    """The buffer of this thread, the same for every file: fresh memory costs more than decoding into it."""
    if not hasattr(_kept, "buffer"):
        _kept.buffer = np.empty(BUFFER_BYTES, np.uint8)
    return _kept.buffer


def _decode(stream: Any, total: int) -> Generator[np.ndarray, None, None]:
    """Blocks of ``total`` bytes of a stream, all in one buffer; fewer bytes if the stream ends earlier."""
    buffer = _buffer()
    left = total
    while left:
        got = _fill(stream, buffer.data[: min(left, BUFFER_BYTES)])
        yield buffer[:got]
        if got < min(left, BUFFER_BYTES):
            return
        left -= got


def _opened(path: Path) -> io.FileIO:
    refuse_placeholder(path)
    return path.open("rb", buffering=0)


def _decoded(file: Any, encoding: str) -> Any:
    if encoding == "raw":
        return file
    if encoding == "gzip":
        return _gzip_file(fileobj=file, mode="rb")
    if encoding == "bzip2":
        return io.BytesIO(_bunzipped(file.read()))
    if encoding == "hex":
        return io.BytesIO(bytes.fromhex(file.read().decode("ascii")))
    return _ZlibReader(file)


def _bunzipped(content: bytes) -> bytes:
    decoder = bz2.BZ2Decompressor()
    decoded = decoder.decompress(content)
    if not decoder.eof:
        raise EOFError("compressed data ended before the end-of-stream marker was reached")
    if decoder.unused_data:
        raise ValueError("compressed data is followed by other bytes")
    return decoded


def _numbers(path: Path, text: bytes, dtype: np.dtype, voxels: int) -> np.ndarray:
    words = text.split()
    if len(words) != voxels:
        raise ValueError(f"{path}: found {len(words)} numbers as text, expected {voxels} voxels of {dtype.name}")
    if dtype.kind == "f":
        return np.array([float(word) for word in words], dtype)
    numbers = [int(word) for word in words]
    limits = np.iinfo(dtype)
    if min(numbers) < limits.min or max(numbers) > limits.max:
        raise ValueError(f"{path}: found numbers from {min(numbers)} to {max(numbers)}, expected {dtype.name}")
    return np.array(numbers, dtype)


def _skip(stream: Any, count: int, where: Path) -> None:
    while count:
        block = stream.read(min(count, 1 << 16))
        if not block:
            raise ValueError(f"{where}: found the end of the file before the first voxel: it is truncated")
        count -= len(block)


def _fill(stream: Any, view: memoryview) -> int:
    """Read until ``view`` is full or the stream ends; the number of bytes read."""
    got = 0
    while got < len(view):
        count = stream.readinto(view[got:])
        if not count:
            break
        got += count
    return got


class _ZlibReader(io.RawIOBase):
    """A readable stream of what a zlib stream contains."""

    def __init__(self, file: Any) -> None:
        super().__init__()
        self._file = file
        self._decoder = _zlib_decoder()

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        view = memoryview(target)
        while not self._decoder.eof:
            block = self._decoder.unconsumed_tail or self._file.read(1 << 16)
            # even without a block: the decoder may hold back the last few bytes that it took
            data = self._decoder.decompress(block, len(view))
            if data:
                view[: len(data)] = data
                return len(data)
            if not block and not self._decoder.eof:
                raise EOFError("compressed data ended before the end-of-stream marker was reached")
        if self._decoder.unused_data or self._file.read(1):
            raise ValueError("compressed data is followed by other bytes")
        return 0
