"""NIfTI-1 and NIfTI-2 in a single file, compressed or not, either byte order."""

from __future__ import annotations

import warnings
import zlib
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..errors import naming_files
from .format import STREAM, Format
from .label_image import LabelImage, VoxelBody, voxel_count
from .nifti_geometry import has_orientation, nifti_affine
from .scan_check import require_volume
from .voxel_stream import MAX_DEFLATE_RATIO, check_voxels

#: size of the header as written in its first four bytes -> (nibabel's class, first byte where voxels may lie, magic strings)
_HEADERS: dict[int, tuple[str, int, tuple[bytes, ...]]] = {
    348: ("Nifti1Header", 352, (b"n+1\0",)),
    540: ("Nifti2Header", 544, (b"n+2\0",)),
}
_EXPECTED = "a NIfTI file (.nii or .nii.gz)"


def describe_nifti(path: Path) -> LabelImage:
    """Read the header of a NIfTI file.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: it is not a NIfTI file of plain numbers, or its header contradicts itself or the file.
    """
    with naming_files(path, f"cannot be read, expected {_EXPECTED}", raises=ValueError):
        return _describe(path)


def _describe(path: Path) -> LabelImage:
    import nibabel as nib

    size = path.stat().st_size
    with path.open("rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
        if compressed != path.name.lower().endswith(".gz"):
            kind = "compressed" if compressed else "not compressed"
            raise ValueError(
                f"{path}: found a file that is {kind} by gzip, although its name says otherwise, expected {_EXPECTED}"
            )
        file.seek(0)
        head = _inflated_start(file, 540) if compressed else file.read(540)
    if len(head) < 348:
        raise ValueError(f"{path}: found {len(head)} bytes, too few for a header, expected {_EXPECTED}")
    sizes = {order: int.from_bytes(head[:4], name) for order, name in (("<", "little"), (">", "big"))}  # type: ignore[arg-type]
    order = next((order for order, value in sizes.items() if value in _HEADERS), None)
    if order is None:
        raise ValueError(
            f"{path}: found the first bytes {head[:8]!r}, which do not start a NIfTI header, expected {_EXPECTED}"
        )
    header_size = sizes[order]
    class_name, first, magic = _HEADERS[header_size]
    if len(head) < header_size:
        raise ValueError(f"{path}: found {len(head)} bytes, too few for a header of {header_size}")
    header = getattr(nib, class_name)(head[:header_size], endianness=order, check=False)
    if header["magic"].tobytes().ljust(4, b"\0")[:4] not in magic:
        raise ValueError(f"{path}: found the magic {header['magic'].tobytes()!r}, expected {magic[0]!r}")
    shape, dtype = shape_and_dtype(path, header)
    offset = float(header["vox_offset"])
    if not offset.is_integer() or offset < first:
        raise ValueError(f"{path}: found the data offset {offset:g} in the header, expected an integer >= {first}")
    voxels = voxel_count(path, shape)
    needed = int(offset) + voxels * dtype.itemsize
    if size * (MAX_DEFLATE_RATIO if compressed else 1) < needed:
        raise ValueError(
            f"{path}: found {size} bytes{' (compressed)' if compressed else ''}, expected {needed} for the shape {shape} of "
            f"{dtype.name} in its header: the file is truncated or its header damaged"
        )
    encoding, start, skip = ("gzip", 0, int(offset)) if compressed else ("raw", int(offset), 0)
    body = VoxelBody((path,), start, encoding, skip=skip, dtype=dtype, voxels=voxels)
    return LabelImage(
        path,
        format="NIfTI",
        shape=shape,
        dtype=dtype.name,
        affine=_affine(header),
        body=body,
        reader="nibabel",
        load=lambda: load_with_nibabel(path, body),
        as_stored=_is_identity(path, header),
    )


def _inflated_start(file: BinaryIO, count: int) -> bytes:
    """The first bytes of a gzip file, without setting up a reader for all of it."""
    decoder = zlib.decompressobj(wbits=31)
    start = block = b""
    while len(start) < count:
        if decoder.eof:  # of one member; another may follow
            block, decoder = decoder.unused_data, zlib.decompressobj(wbits=31)
        block = block or file.read(4096)
        if not block:
            break
        start += decoder.decompress(block, count - len(start))
        block = b""
    return start


def shape_and_dtype(path: Path, header: Any) -> tuple[tuple[int, ...], np.dtype]:
    """Size per axis and voxel type of a NIfTI header; a ValueError naming the file if the voxels are not plain numbers."""
    from nibabel.spatialimages import HeaderDataError

    dims = [int(value) for value in header["dim"]]
    if not 1 <= dims[0] <= 7:
        raise ValueError(f"{path}: found {dims[0]} dimensions in the header, expected 1 to 7")
    code = int(header["datatype"])
    try:
        dtype = header.get_data_dtype()
    except (KeyError, HeaderDataError):
        raise ValueError(f"{path}: found the unknown data type code {code}, expected integers or floats") from None
    if dtype.kind not in "iuf":
        kind = "RGB colours" if dtype.names else str(dtype)
        raise ValueError(f"{path}: found voxels that are {kind}, expected one number per voxel")
    if int(header["bitpix"]) != dtype.itemsize * 8:
        raise ValueError(
            f"{path}: found {int(header['bitpix'])} bits per voxel for the type {dtype.name} in the header"
        )
    return tuple(dims[1 : dims[0] + 1]), dtype


def _is_identity(path: Path, header: Any) -> bool:
    from nibabel.spatialimages import HeaderDataError

    try:
        slope, intercept = header.get_slope_inter()
    except HeaderDataError as error:
        raise ValueError(f"{path}: found an invalid slope or intercept in the header: {error}") from error
    return slope in (None, 1.0) and intercept in (None, 0.0)


def _affine(header: Any) -> np.ndarray | None:
    from nibabel.spatialimages import HeaderDataError

    try:
        affine = nifti_affine(header, "")
    except (ValueError, HeaderDataError):
        # a broken orientation does not change how many voxels there are
        return None
    return affine if np.isfinite(affine).all() else None


def load_with_nibabel(path: Path, body: VoxelBody) -> np.ndarray:
    """All voxels as nibabel scales them. It stops reading at the last voxel, so length and checksum are checked beforehand."""
    check_voxels(body)
    return np.asanyarray(open_nifti(path).dataobj)


def open_nifti(path: str | PathLike[str], **options: Any) -> Any:
    """Like `nibabel.load`, which would look for ``ct.nii.gz`` if it were given ``ct.Nii.gz``.

    Args:
        path: the file.
        options: those of `nibabel.load`.
    """
    import nibabel as nib

    name = Path(path).name
    ending = next((ending for ending in (".nii.gz", ".nii") if name.lower().endswith(ending)), "")
    if ending and not name.endswith((ending, ending.upper())):
        with nib.openers.Opener(str(path)) as file:
            start = file.read(540)
        for kind in (nib.Nifti1Image, nib.Nifti2Image):
            if kind.header_class.may_contain_header(start):
                return kind.from_file_map({"image": nib.FileHolder(str(path))}, **options)
    return nib.load(path, **options)


def check_nifti(path: Path, allow_gaps: bool = False) -> None:
    """Look at a NIfTI file before it is read as a scan.

    nibabel stops at the last voxel, so it never sees the checksum after it or anything else that follows. MONAI assumes voxels
    of 1 mm at the origin where a header spans no volume: mask and volumes would be wrong.

    Args:
        path: file of a scan.
        allow_gaps: has no meaning here.

    Raises:
        ValueError: as `describe_nifti`; the file holds voxels other than its header says; the header's affine is singular or
            not finite, its unit of length unknown, its quaternion invalid.

    Warns:
        UserWarning: the header gives only sizes, so that left and right are a guess.
    """
    image = describe_nifti(path)
    if image.body is not None:
        check_voxels(image.body)
    header = open_nifti(path).header
    affine = nifti_affine(header, str(path))
    require_volume(path, affine)
    # nibabel mends headers while it loads, and ignores a form with an unknown code
    if image.affine is not None and not np.allclose(image.affine, affine):
        raise ValueError(
            f"{path}: found a header that readers place differently, expected sform_code and qform_code from 0 to 5"
        )
    if not has_orientation(header):
        warnings.warn(
            f"{path}: found neither an sform nor a qform in the NIfTI header, expected one: left and right are taken as nibabel "
            "takes them (first axis to the left), the sizes from pixdim",
            stacklevel=5,
        )


FORMAT = Format(
    (".nii", ".nii.gz"),
    describe_nifti,
    readers=(("NIfTI-1/2 in one file", STREAM), ("NIfTI-1/2 with slope or intercept", "nibabel")),
    check_scan=check_nifti,
)
