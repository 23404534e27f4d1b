"""MetaImage: .mha, and .mhd with its voxels in another file."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ..errors import naming_files
from ..geometry import LPS_TO_RAS, affine_of_axes
from .detached import header_and_body, numbered_files, require_files
from .format import STREAM, Format
from .label_image import LabelImage, VoxelBody, voxel_count
from .scan_check import check_described
from .voxel_stream import load_voxels, stream_name

_EXPECTED = "a MetaImage (.mha or .mhd)"
_TYPES = {
    "MET_CHAR": "int8",
    "MET_UCHAR": "uint8",
    "MET_SHORT": "int16",
    "MET_USHORT": "uint16",
    "MET_INT": "int32",
    "MET_UINT": "uint32",
    "MET_LONG_LONG": "int64",
    "MET_ULONG_LONG": "uint64",
    "MET_FLOAT": "float32",
    "MET_DOUBLE": "float64",
}
#: the list of files belongs to the header
_MAX_HEADER = 1 << 20


def describe_metaimage(path: Path) -> LabelImage:
    """Read the header of a MetaImage file.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: it is not a MetaImage of plain numbers; it has a form that ITK reads wrongly or not at all (and so would
            anyone who trains on the file): voxels compressed after the header without ``CompressedDataSize``, or after another
            ``HeaderSize`` than its own, or a list of files with too many, too few or empty names.
    """
    with naming_files(path, f"cannot be read, expected {_EXPECTED}", raises=ValueError):
        fields, header_bytes = _header(path)
        dimensions = int(_required(path, fields, "NDims"))
        shape = tuple(int(value) for value in _required(path, fields, "DimSize").split())
        if len(shape) != dimensions:
            raise ValueError(f"{path}: found {len(shape)} sizes for {dimensions} dimensions in the header")
        name = _TYPES.get(_required(path, fields, "ElementType").upper())
        if name is None:
            raise ValueError(f"{path}: found voxels of type {fields['ElementType']!r}, expected integers or floats")
        channels = int(fields.get("ElementNumberOfChannels", "1"))
        if channels != 1:
            raise ValueError(f"{path}: found {channels} channels per voxel, expected one number per voxel")
        big = _truth(path, fields, "BinaryDataByteOrderMSB", _truth(path, fields, "ElementByteOrderMSB", False))
        dtype = np.dtype(name).newbyteorder(">" if big else "<")
        voxels = voxel_count(path, shape)
        files, start, encoding = _body(path, fields, header_bytes, shape)
        body = VoxelBody(files, start, encoding, skip=0, dtype=dtype, voxels=voxels)
        return LabelImage(
            path,
            format="MetaImage",
            shape=shape,
            dtype=dtype.name,
            affine=_affine(fields, dimensions),
            body=body,
            reader=stream_name(body),
            load=lambda: load_voxels(body, shape),
        )


def _header(path: Path) -> tuple[dict[str, str], int]:
    with path.open("rb") as file:
        block = file.read(_MAX_HEADER)
    fields: dict[str, str] = {}
    position = 0
    while position < len(block):
        end = block.find(b"\n", position)
        end = len(block) if end < 0 else end
        name, equals, value = block[position:end].decode("ascii", errors="replace").partition("=")
        position = end + 1
        if not equals:
            if name.strip():
                break
            continue
        if not (name + value).replace("\t", " ").strip().isprintable() or "\ufffd" in name + value:
            raise ValueError(f"{path}: found {name[:40]!r} = {value[:40]!r} in the header, expected plain text")
        if name.strip() in fields:
            raise ValueError(f"{path}: found the field {name.strip()!r} twice in the header")
        fields[name.strip()] = value.strip()
        if name.strip() == "ElementDataFile":
            return fields, position
    raise ValueError(f"{path}: found no MetaImage header that ends with 'ElementDataFile = ...'")


def _required(path: Path, fields: dict[str, str], name: str) -> str:
    if name not in fields:
        raise ValueError(f"{path}: found no field {name!r} in the header, expected one")
    return fields[name]


def _truth(path: Path, fields: dict[str, str], name: str, default: bool) -> bool:
    text = fields.get(name, str(default))
    if text.lower() not in ("true", "t", "1", "false", "f", "0"):
        raise ValueError(f"{path}: found {name} = {text!r} in the header, expected True or False")
    return text.lower() in ("true", "t", "1")


def _body(
    path: Path, fields: dict[str, str], header_bytes: int, shape: tuple[int, ...]
) -> tuple[tuple[Path, ...], int, str]:
    """Files, first byte in each and encoding of the voxels."""
    target = fields["ElementDataFile"]
    local = target.upper() == "LOCAL"
    compressed = _truth(path, fields, "CompressedData", False)
    encoding = "zlib" if compressed else "raw"
    if not _truth(path, fields, "BinaryData", True):
        if compressed:
            raise ValueError(f"{path}: found compressed text in the header, expected only one of the two")
        encoding = "text"
    start = int(fields.get("HeaderSize", "0"))
    if (encoding == "text" and start) or start < -1 or (compressed and start < 0):
        raise ValueError(f"{path}: found HeaderSize {start} for {encoding} voxels in the header, expected 0")
    if local and start not in (0, -1, header_bytes):
        raise ValueError(f"{path}: found HeaderSize {start} and the voxels behind the header, expected HeaderSize 0")
    # -1: the voxels are the end of their file, where damage does not show unless they are all of it
    start = header_bytes if local else max(start, 0)
    if local:
        files: tuple[Path, ...] = (path,)
    elif target.split()[0].upper() == "LIST":
        files = _listed(path, target, header_bytes, shape)
    elif "%" in target:
        files = _numbered(path, target, shape)
    else:
        files = (path.parent / target,)
    if compressed:
        _check_compressed_size(path, fields, files, start)
    return files, start, encoding


def _listed(path: Path, target: str, header_bytes: int, shape: tuple[int, ...]) -> tuple[Path, ...]:
    words = target.split()
    axes = words[1].upper().removesuffix("D") if len(words) > 1 else str(len(shape) - 1)
    text = path.read_bytes()[header_bytes:].decode()
    if not text.endswith("\n"):
        raise ValueError(
            f"{path}: found a list of files that does not end with a line break, without which ITK misses the last one"
        )
    names = re.split(r"\r?\n", text.rstrip("\r\n"))
    if len(words) > 2 or not axes.isdecimal() or not 1 <= int(axes) < len(shape):
        raise ValueError(
            f"{path}: found the list {target!r} in the header, expected LIST and 1 to {len(shape) - 1} axes"
        )
    return require_files(path, names, shape, int(axes))


def _numbered(path: Path, target: str, shape: tuple[int, ...]) -> tuple[Path, ...]:
    words = target.split()
    if len(words) != 4 or not all(word.isdecimal() for word in words[1:]):
        raise ValueError(
            f"{path}: found the files {target!r}, expected a pattern and its first number, last number and step"
        )
    first, last, step = (int(word) for word in words[1:])
    return require_files(path, numbered_files(path, words[0], (first, last, step)), shape, len(shape) - 1)


def _check_compressed_size(path: Path, fields: dict[str, str], files: tuple[Path, ...], start: int) -> None:
    if "CompressedDataSize" not in fields:
        if files == (path,) or start:
            raise ValueError(
                f"{path}: found no field 'CompressedDataSize' in the header, without which ITK reads no voxels"
            )
        return
    declared = int(fields["CompressedDataSize"])
    for file in files:
        found = file.stat().st_size - start
        if declared != found:
            raise ValueError(
                f"{path}: found {found} bytes of compressed voxels, expected {declared} as the header says"
            )


def _affine(fields: dict[str, str], dimensions: int) -> np.ndarray | None:
    def numbers(*names: str) -> list[float] | None:
        return next(([float(part) for part in fields[name].split()] for name in names if name in fields), None)

    spacing = numbers("ElementSpacing", "ElementSize")
    matrix = numbers("TransformMatrix", "Rotation", "Orientation")
    origin = numbers("Offset", "Position", "Origin")
    if spacing is None or len(spacing) != dimensions:
        return None
    if matrix is None:
        matrix = np.eye(dimensions).reshape(-1).tolist()
    if len(matrix) != dimensions**2:
        return None
    rows = np.array(matrix).reshape(dimensions, dimensions)
    affine = affine_of_axes([(row * step).tolist() for row, step in zip(rows, spacing, strict=True)], origin)
    return None if affine is None else LPS_TO_RAS @ affine


def check_metaimage(path: Path, allow_gaps: bool = False) -> None:
    """Look at a MetaImage before it is read as a scan: by ITK, which knows the endings in lower case only."""
    check_described(path, describe_metaimage)
    if path.suffix != path.suffix.lower():
        raise ValueError(
            f"{path}: found the ending {path.suffix}, expected {path.suffix.lower()}: ITK reads no scans of others"
        )


FORMAT = Format(
    (".mha", ".mhd"),
    describe_metaimage,
    header_and_body(".mhd", describe_metaimage),
    readers=(("MetaImage, raw, zlib or text, in one file or in many", STREAM),),
    check_scan=check_metaimage,
)
