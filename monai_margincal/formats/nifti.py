"""NIfTI-1 and NIfTI-2, single file or header/image pair, compressed or not, either byte order."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import nibabel as nib
import numpy as np

from .label_image import LabelImage, VoxelBody, naming, voxel_count

#: size of the header as written in its first four bytes -> (class, first byte where voxels may lie, magic strings)
_HEADERS: dict[int, tuple[Any, int, tuple[bytes, ...]]] = {
    348: (nib.Nifti1Header, 352, (b"n+1\0",)),
    540: (nib.Nifti2Header, 544, (b"n+2\0",)),
}
_EXPECTED = "a NIfTI label (.nii or .nii.gz)"
#: deflate cannot compress better than this; a header that claims more lies
_MAX_DEFLATE_RATIO = 1040


def describe_nifti(path: Path) -> LabelImage:
    """Read the header of a NIfTI file.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: it is not a NIfTI file of plain numbers, or its header contradicts itself or the file.
    """
    with naming(path, _EXPECTED):
        if path.name.lower().endswith((".hdr", ".img", ".hdr.gz", ".img.gz")):
            return _describe_pair(path)
        return _describe_single(path)


def _describe_single(path: Path) -> LabelImage:
    size = path.stat().st_size
    with path.open("rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
        if compressed != path.name.lower().endswith(".gz"):
            kind = "compressed" if compressed else "not compressed"
            raise ValueError(f"{path}: found a file that is {kind} by gzip, against its name; expected {_EXPECTED}")
        file.seek(0)
        head = _inflated_start(file, 540) if compressed else file.read(540)
    if len(head) < 348:
        raise ValueError(f"{path}: found {len(head)} bytes, too few for a header, expected {_EXPECTED}")
    sizes = {order: int.from_bytes(head[:4], name) for order, name in (("<", "little"), (">", "big"))}  # type: ignore[arg-type]
    order = next((order for order, value in sizes.items() if value in _HEADERS), None)
    if order is None:
        raise ValueError(
            f"{path}: found the first bytes {head[:8]!r}, which begin no NIfTI header, expected {_EXPECTED}"
        )
    header_size = sizes[order]
    header_class, first, magic = _HEADERS[header_size]
    if len(head) < header_size:
        raise ValueError(f"{path}: found {len(head)} bytes, too few for a header of {header_size}")
    header = header_class(head[:header_size], endianness=order, check=False)
    if header["magic"].tobytes().ljust(4, b"\0")[:4] not in magic:
        raise ValueError(f"{path}: found the magic {header['magic'].tobytes()!r}, expected {magic[0]!r}")
    shape, dtype = _shape_and_dtype(path, header)
    offset = float(header["vox_offset"])
    if not offset.is_integer() or offset < first:
        raise ValueError(f"{path}: found the data offset {offset:g} in the header, expected an integer >= {first}")
    voxels = voxel_count(path, shape)
    needed = int(offset) + voxels * dtype.itemsize
    if size * (_MAX_DEFLATE_RATIO if compressed else 1) < needed:
        raise ValueError(
            f"{path}: found {size} bytes{' (compressed)' if compressed else ''}, expected {needed} for the shape {shape} of "
            f"{dtype.name} in its header: the file is truncated or its header damaged"
        )
    body = None
    if _is_identity(path, header):
        encoding, start, skip = ("gzip", 0, int(offset)) if compressed else ("raw", int(offset), 0)
        body = VoxelBody(path, start, encoding, skip, dtype, voxels)
    return LabelImage(
        path, "NIfTI", shape, dtype.name, _affine(header), body, "nibabel", lambda: _load(path, path, needed)
    )


def _inflated_start(file: BinaryIO, count: int) -> bytes:
    """The first bytes of a gzip stream, without setting up a reader for all of it."""
    decoder = zlib.decompressobj(wbits=31)
    start = b""
    while len(start) < count and not decoder.eof and (block := file.read(4096)):
        start += decoder.decompress(block, count - len(start))
    return start


def _describe_pair(path: Path) -> LabelImage:
    image: Any = nib.load(path)
    shape, dtype = _shape_and_dtype(path, image.header)
    voxels_file = Path(image.file_map["image"].filename)
    needed = int(image.dataobj.offset) + voxel_count(path, shape) * dtype.itemsize
    affine = image.affine if image.affine is not None and np.isfinite(image.affine).all() else None
    return LabelImage(
        path, "NIfTI pair", shape, dtype.name, affine, None, "nibabel", lambda: _load(path, voxels_file, needed)
    )


def _shape_and_dtype(path: Path, header: Any) -> tuple[tuple[int, ...], np.dtype]:
    dims = [int(value) for value in header["dim"]]
    if not 1 <= dims[0] <= 7:
        raise ValueError(f"{path}: found {dims[0]} dimensions in the header, expected 1 to 7")
    code = int(header["datatype"])
    try:
        dtype = header.get_data_dtype()
    except (KeyError, nib.spatialimages.HeaderDataError):
        raise ValueError(f"{path}: found the unknown data type code {code}, expected integers or floats") from None
    if dtype.kind not in "iuf":
        kind = "RGB colours" if dtype.names else str(dtype)
        raise ValueError(f"{path}: found voxels that are {kind}, expected a label: one integer per voxel")
    if int(header["bitpix"]) != dtype.itemsize * 8:
        raise ValueError(
            f"{path}: found {int(header['bitpix'])} bits per voxel for the type {dtype.name} in the header"
        )
    return tuple(dims[1 : dims[0] + 1]), dtype


def _is_identity(path: Path, header: Any) -> bool:
    try:
        slope, intercept = header.get_slope_inter()
    except nib.spatialimages.HeaderDataError as error:
        raise ValueError(f"{path}: found an invalid slope or intercept in the header: {error}") from error
    return slope in (None, 1.0) and intercept in (None, 0.0)


def _affine(header: Any) -> np.ndarray | None:
    try:
        affine = header.get_best_affine()
    except (ValueError, nib.spatialimages.HeaderDataError):
        # a broken orientation does not change how many voxels there are
        return None
    return affine if np.isfinite(affine).all() else None


def _load(path: Path, voxels_file: Path, needed: int) -> np.ndarray:
    """All voxels as nibabel scales them. It stops reading at the last voxel, so length and checksum are looked at before."""
    found = 0
    with voxels_file.open("rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        stream: Any = gzip.GzipFile(fileobj=file) if compressed else file
        while block := stream.read(1 << 20):
            found += len(block)
    if found != needed:
        raise ValueError(f"{path}: found {found} bytes in {voxels_file.name}, expected {needed} as the header says")
    image: Any = nib.load(path)
    return np.asanyarray(image.dataobj)
