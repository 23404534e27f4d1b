"""MetaImage: .mha, and .mhd with its voxels in another file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..errors import naming_files
from ..geometry import LPS_TO_RAS, affine_of_axes
from .detached import header_and_body
from .format import STREAM, Format
from .itk_reader import load_with_simpleitk
from .label_image import LabelImage, VoxelBody, voxel_count

_EXPECTED = "a MetaImage label (.mha or .mhd)"
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
_MAX_HEADER = 1 << 16


def describe_metaimage(path: Path) -> LabelImage:
    """Read the header of a MetaImage file.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: it is not a MetaImage of plain numbers.
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
            raise ValueError(f"{path}: found {channels} channels per voxel, expected a label: one integer per voxel")
        big = _truth(fields.get("BinaryDataByteOrderMSB", fields.get("ElementByteOrderMSB", "False")))
        dtype = np.dtype(name).newbyteorder(">" if big else "<")
        body = _body(path, fields, header_bytes)
        voxels = voxel_count(path, shape)
        return LabelImage(
            path,
            format="MetaImage",
            shape=shape,
            dtype=dtype.name,
            affine=_affine(fields, dimensions),
            body=None if body is None else VoxelBody(*body, skip=0, dtype=dtype, voxels=voxels),
            reader="SimpleITK",
            load=lambda: load_with_simpleitk(path),
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


def _truth(text: str) -> bool:
    return text.strip().lower()[:1] in ("t", "1", "y")


def _body(path: Path, fields: dict[str, str], header_bytes: int) -> tuple[Path, int, str] | None:
    """File, first byte and encoding of the voxels; None where only the general reader finds them."""
    target = fields["ElementDataFile"]
    if not _truth(fields.get("BinaryData", "True")) or fields.get("HeaderSize", "0") != "0":
        return None
    encoding = "zlib" if _truth(fields.get("CompressedData", "False")) else "raw"
    if target.upper().startswith("LIST") or "%" in target:
        return None
    file, start = (path, header_bytes) if target.upper() == "LOCAL" else (path.parent / target, 0)
    if encoding == "zlib" and "CompressedDataSize" in fields:
        declared, found = int(fields["CompressedDataSize"]), file.stat().st_size - start
        if declared != found:
            raise ValueError(
                f"{path}: found {found} bytes of compressed voxels, expected {declared} as the header says"
            )
    return file, start, encoding


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


FORMAT = Format(
    (".mha", ".mhd"),
    describe_metaimage,
    header_and_body(".mhd", describe_metaimage),
    readers=(("MetaImage, raw or zlib", STREAM), ("MetaImage, other encodings", "SimpleITK")),
)
