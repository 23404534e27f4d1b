"""NRRD with attached or detached voxels."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ..errors import naming_files
from ..geometry import affine_of_axes, signs_to_ras
from .detached import header_and_body
from .format import STREAM, Format
from .itk_reader import load_with_simpleitk
from .label_image import LabelImage, VoxelBody, voxel_count

_EXPECTED = "an NRRD label"
_TYPES = {
    "int8": ("signed char", "int8", "int8_t"),
    "uint8": ("uchar", "unsigned char", "uint8", "uint8_t"),
    "int16": ("short", "short int", "signed short", "signed short int", "int16", "int16_t"),
    "uint16": ("ushort", "unsigned short", "unsigned short int", "uint16", "uint16_t"),
    "int32": ("int", "signed int", "int32", "int32_t"),
    "uint32": ("uint", "unsigned int", "uint32", "uint32_t"),
    "int64": ("longlong", "long long", "long long int", "signed long long", "signed long long int", "int64", "int64_t"),
    "uint64": ("ulonglong", "unsigned long long", "unsigned long long int", "uint64", "uint64_t"),
    "float32": ("float",),
    "float64": ("double",),
}
_DTYPE_OF = {name: dtype for dtype, names in _TYPES.items() for name in names}
#: kinds of axes along which voxels lie in space; any other kind is a channel
_SPATIAL_KINDS = {"domain", "space", "time", "none", "???"}
_MAX_HEADER = 1 << 20


def describe_nrrd(path: Path) -> LabelImage:
    """Read the header of an NRRD file (.nrrd or .nhdr).

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: it is not an NRRD file of plain numbers.
    """
    with naming_files(path, f"cannot be read, expected {_EXPECTED}", raises=ValueError):
        fields, header_bytes = _header(path)
        dtype_name = _DTYPE_OF.get(_required(path, fields, "type").lower())
        if dtype_name is None:
            raise ValueError(f"{path}: found voxels of type {fields['type']!r}, expected integers or floats")
        dtype = np.dtype(dtype_name)
        if dtype.itemsize > 1:
            endian = _required(path, fields, "endian").lower()
            if endian not in ("little", "big"):
                raise ValueError(f"{path}: found endian {endian!r} in the header, expected 'little' or 'big'")
            dtype = dtype.newbyteorder("<" if endian == "little" else ">")
        sizes = tuple(int(value) for value in _required(path, fields, "sizes").split())
        if len(sizes) != int(_required(path, fields, "dimension")):
            raise ValueError(f"{path}: found {len(sizes)} sizes for {fields['dimension']} dimensions in the header")
        voxels = voxel_count(path, sizes)
        body = _body(path, fields, header_bytes)
        kinds = fields.get("kinds", "").lower().split()
        channels = [axis for axis, kind in enumerate(kinds) if kind not in _SPATIAL_KINDS]
        return LabelImage(
            path,
            format="NRRD",
            shape=sizes,
            dtype=dtype.name,
            affine=_affine(fields),
            body=None if body is None else VoxelBody(*body, skip=0, dtype=dtype, voxels=voxels),
            reader="SimpleITK",
            load=lambda: load_with_simpleitk(path),
            channel_axis=channels[0] if channels else -1,
        )


def _header(path: Path) -> tuple[dict[str, str], int]:
    with path.open("rb") as file:
        block = file.read(_MAX_HEADER)
    if not re.match(rb"NRRD000\d\r?\n", block):
        raise ValueError(f"{path}: found the first bytes {block[:8]!r}, expected 'NRRD000x'")
    end = re.search(rb"\r?\n\r?\n", block)
    detached = path.suffix.lower() == ".nhdr"
    if end is None and not detached:
        raise ValueError(f"{path}: found no empty line that ends the header, expected one before the voxels")
    text = block[: end.start() if end else len(block)].decode("latin-1")
    fields: dict[str, str] = {}
    for line in text.splitlines()[1:]:
        name, colon, value = line.partition(":")
        if line.startswith("#") or not colon or value.startswith("="):
            continue
        name = name.strip().lower()
        if name in fields:
            raise ValueError(f"{path}: found the field {name!r} twice in the header")
        fields[name] = value.strip()
    return fields, end.end() if end else len(block)


def _required(path: Path, fields: dict[str, str], name: str) -> str:
    if name not in fields:
        raise ValueError(f"{path}: found no field {name!r} in the header, expected one")
    return fields[name]


def _body(path: Path, fields: dict[str, str], header_bytes: int) -> tuple[Path, int, str] | None:
    """File, first byte and encoding of the voxels; None where only the general reader finds them."""
    encoding = {"raw": "raw", "gzip": "gzip", "gz": "gzip"}.get(_required(path, fields, "encoding").lower())
    skips = {fields.get(name, "0") for name in ("line skip", "lineskip", "byte skip", "byteskip")}
    target = fields.get("data file", fields.get("datafile"))
    if encoding is None or skips != {"0"}:
        return None
    if target is None:
        if path.suffix.lower() == ".nhdr":
            raise ValueError(f"{path}: found no field 'data file' in a detached header, expected one")
        return path, header_bytes, encoding
    if target.upper().startswith("LIST") or "%" in target:
        return None
    return path.parent / target, 0, encoding


def _affine(fields: dict[str, str]) -> np.ndarray | None:
    directions = [
        [float(part) for part in vector.split(",")]
        for vector in re.findall(r"\(([^)]*)\)", fields.get("space directions", ""))
    ]
    origin = [float(part) for part in fields.get("space origin", "").strip("()").split(",") if part]
    affine = affine_of_axes(directions, origin or None)
    signs = signs_to_ras(fields.get("space", ""))
    return None if affine is None or signs is None else np.diag([*signs, 1.0]) @ affine


FORMAT = Format(
    (".nrrd", ".nhdr"),
    describe_nrrd,
    header_and_body(".nhdr", describe_nrrd),
    readers=(("NRRD, raw or gzip", STREAM), ("NRRD, other encodings", "SimpleITK")),
)
