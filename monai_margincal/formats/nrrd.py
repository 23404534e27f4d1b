"""NRRD with attached or detached voxels."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ..errors import naming_files
from ..geometry import affine_of_axes, signs_to_ras
from .detached import header_and_body, numbered_files, require_files
from .format import STREAM, Format
from .label_image import LabelImage, VoxelBody, voxel_count
from .voxel_stream import load_voxels, stream_name

_EXPECTED = "an NRRD image (.nrrd or .nhdr)"
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
_ENCODINGS = {
    "raw": "raw",
    "gzip": "gzip",
    "gz": "gzip",
    "bzip2": "bzip2",
    "bz2": "bzip2",
    "ascii": "text",
    "text": "text",
    "txt": "text",
    "hex": "hex",
}
_DATA_FILE = ("data file", "datafile")


def describe_nrrd(path: Path) -> LabelImage:
    """Read the header of an NRRD file (.nrrd or .nhdr).

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: it is not an NRRD file of plain numbers.
    """
    with naming_files(path, f"cannot be read, expected {_EXPECTED}", raises=ValueError):
        fields, names, header_bytes = _header(path)
        dtype_name = _DTYPE_OF.get(_required(path, fields, "type").lower())
        if dtype_name is None:
            raise ValueError(f"{path}: found voxels of type {fields['type']!r}, expected integers or floats")
        dtype = np.dtype(dtype_name)
        encoding = _ENCODINGS.get(_required(path, fields, "encoding").lower())
        if encoding is None:
            raise ValueError(
                f"{path}: found the encoding {fields['encoding']!r}, expected one of {', '.join(_ENCODINGS)}"
            )
        if dtype.itemsize > 1 and encoding != "text":
            endian = _required(path, fields, "endian").lower()
            if endian not in ("little", "big"):
                raise ValueError(f"{path}: found endian {endian!r} in the header, expected 'little' or 'big'")
            dtype = dtype.newbyteorder("<" if endian == "little" else ">")
        sizes = tuple(int(value) for value in _required(path, fields, "sizes").split())
        if len(sizes) != int(_required(path, fields, "dimension")):
            raise ValueError(f"{path}: found {len(sizes)} sizes for {fields['dimension']} dimensions in the header")
        voxels = voxel_count(path, sizes)
        files = _files(path, fields, names, sizes)
        start, skip = _skipped(path, fields, encoding, files, header_bytes=header_bytes)
        body = VoxelBody(files, start, encoding, skip=skip, dtype=dtype, voxels=voxels)
        kinds = fields.get("kinds", "").lower().split()
        channels = [axis for axis, kind in enumerate(kinds) if kind not in _SPATIAL_KINDS]
        if channels and len(kinds) != len(sizes):
            raise ValueError(f"{path}: found {len(kinds)} kinds for {len(sizes)} axes in the header")
        return LabelImage(
            path,
            format="NRRD",
            shape=sizes,
            dtype=dtype.name,
            affine=_affine(fields),
            body=body,
            reader=stream_name(body),
            load=lambda: load_voxels(body, sizes),
            channel_axis=channels[0] if channels else -1,
        )


def _header(path: Path) -> tuple[dict[str, str], list[str], int]:
    """The fields, the list of files at their end, and the number of bytes in all."""
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
    lines = re.split(r"\r?\n", text)
    for number, line in enumerate(lines[1:], 2):
        name, colon, value = line.partition(":")
        if not line.replace("\t", " ").isprintable():
            raise ValueError(f"{path}: found {line[:40]!r} in the header, expected plain text")
        if line.startswith("#") or not colon or value.startswith("="):
            continue
        name = name.strip().lower()
        if name in fields:
            raise ValueError(f"{path}: found the field {name!r} twice in the header")
        fields[name] = value.strip()
        if name in _DATA_FILE and value.split()[:1] == ["LIST"]:
            return fields, [line for line in lines[number:] if line], len(block)
    return fields, [], end.end() if end else len(block)


def _required(path: Path, fields: dict[str, str], name: str) -> str:
    if name not in fields:
        raise ValueError(f"{path}: found no field {name!r} in the header, expected one")
    return fields[name]


def _files(path: Path, fields: dict[str, str], names: list[str], sizes: tuple[int, ...]) -> tuple[Path, ...]:
    target = next((fields[name] for name in _DATA_FILE if name in fields), None)
    if target is None:
        if path.suffix.lower() == ".nhdr":
            raise ValueError(f"{path}: found no field 'data file' in a detached header, expected one")
        return (path,)
    words = target.split()
    if words[:1] == ["LIST"]:
        if len(words) > 2:
            raise ValueError(f"{path}: found the list {target!r} in the header, expected LIST and a number of axes")
        return require_files(path, names, sizes, int(words[1]) if len(words) > 1 else len(sizes) - 1)
    if "%" not in target:
        return (path.parent / target,)
    pattern, *numbers = words
    if len(numbers) not in (3, 4):
        raise ValueError(
            f"{path}: found the files {target!r}, expected a pattern and its first number, last number and step"
        )
    first, last, step, *axes = (int(number) for number in numbers)
    names = numbered_files(path, pattern, (first, last, step))
    return require_files(path, names, sizes, axes[0] if axes else len(sizes) - 1)


def _skipped(
    path: Path, fields: dict[str, str], encoding: str, files: tuple[Path, ...], *, header_bytes: int
) -> tuple[int, int]:
    """The first byte of the voxels in each file, and that of the first voxel in what is decoded from there."""
    lines, count = (
        next((int(fields[name]) for name in names if name in fields), 0)
        for names in (("line skip", "lineskip"), ("byte skip", "byteskip"))
    )
    if lines < 0 or count < -1 or (count < 0 and encoding != "raw"):
        raise ValueError(f"{path}: found a line skip of {lines} and a byte skip of {count}, expected at least 0")
    if lines and len(files) > 1:
        raise ValueError(
            f"{path}: found a line skip of {lines} and {len(files)} files of voxels, expected only one of the two"
        )
    start = header_bytes if files == (path,) else 0
    if lines:
        with files[0].open("rb") as file:
            file.seek(start)
            for _ in range(lines):
                if not file.readline().endswith(b"\n"):
                    raise ValueError(f"{files[0]}: found fewer than {lines} lines before the voxels, expected as many")
            start = file.tell()
    # -1: the voxels are the end of their file, where damage does not show unless they are all of it
    count = max(count, 0)
    return (start, count) if encoding in ("gzip", "bzip2") else (start + count, 0)


def _affine(fields: dict[str, str]) -> np.ndarray | None:
    vectors = re.findall(r"\(([^)]*)\)", fields.get("space directions", ""))
    directions = [[float(part) for part in vector.split(",")] for vector in vectors]
    # an axis of channels has no direction, which some writers express as numbers
    directions = [direction for direction in directions if not np.isnan(direction).all()]
    origin = [float(part) for part in fields.get("space origin", "").strip("()").split(",") if part]
    affine = affine_of_axes(directions, origin or None)
    signs = signs_to_ras(fields.get("space", ""))
    return None if affine is None or signs is None else np.diag([*signs, 1.0]) @ affine


FORMAT = Format(
    (".nrrd", ".nhdr"),
    describe_nrrd,
    header_and_body(".nhdr", describe_nrrd),
    readers=(("NRRD, raw, gzip, bzip2, text or hex, in one file or in many", STREAM),),
)
