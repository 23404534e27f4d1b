"""DICOM series: a folder of files, or a single file; a file holds one slice or several frames."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..errors import naming_files
from ..extras import require
from ..geometry import LPS_TO_RAS
from .dicom_segmentation import describe_segmentation
from .dicom_slices import NoPlace, frame_attribute, frame_count, is_segmentation, odd_ones, slices_of, thickness_of
from .format import Format
from .label_image import LabelImage
from .slice_stack import stack_slices

#: a file and the number of a frame in it
_Frame: TypeAlias = tuple[Path, int]

_EXPECTED = "a DICOM series (a folder of one series) or a DICOM segmentation"
_UNREADABLE = f"cannot be read, expected {_EXPECTED}"


def describe_dicom(path: Path, gaps: bool = False, as_scan: bool = False) -> LabelImage:
    """Read the headers of a DICOM file, or of all files of the one series in a folder.

    Files in the folder that are not DICOM are left out, as every DICOM reader does; an empty file or a damaged ``.dcm`` is
    an error.

    Args:
        path: file or folder.
        gaps: take a series in which a slice is missing.
        as_scan: refuse a file that does not say where its slices lie, or does not hold them in order along their normal.

    Raises:
        FileNotFoundError: there is no such file or folder.
        MissingSlice: without ``gaps``: two neighbouring slices lie much farther apart than the others do.
        ValueError: no DICOM file, several series, something that is not a slice, slices of different sizes, slices that are not
            one straight and even stack within 0.1 mm, see `stack_slices`, or no pixels.
    """
    with naming_files(path, _UNREADABLE, raises=ValueError):
        files = _dicom_files(path) if path.is_dir() else [path]
        headers = [(file, _header(file)) for file in files]
        series = sorted({str(header.get("SeriesInstanceUID", "")) for _, header in headers})
        if len(series) > 1:
            odd = "".join(f"; {file.name} is {what}" for file, what in odd_ones(headers)[:3])
            raise ValueError(
                f"{path}: found {len(series)} DICOM series ({', '.join(series[:3])}), expected one per folder{odd}"
            )
        if as_scan and any(is_segmentation(header) for _, header in headers):
            raise ValueError(f"{path}: found a DICOM segmentation, expected a scan")
        if len(headers) == 1 and is_segmentation(headers[0][1]):
            return describe_segmentation(path, headers[0][0], headers[0][1])
        if any(is_segmentation(header) for _, header in headers):
            raise ValueError(f"{path}: found {len(headers)} DICOM segmentations, expected one file per label")
        return _describe_series(path, headers, gaps, as_scan)


def _has_magic(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(132)[128:] == b"DICM"


def _dicom_files(folder: Path) -> list[Path]:
    found = []
    for file in sorted(folder.iterdir()):
        if not file.is_file() or file.name.startswith(".") or file.name.upper() == "DICOMDIR":
            continue
        if _has_magic(file):
            found.append(file)
        elif file.suffix.lower() in (".dcm", ".dicom", ".ima") or file.stat().st_size == 0:
            raise ValueError(f"{file}: found no DICOM header, expected a slice of the series in {folder}")
    if not found:
        raise ValueError(
            f"{folder}: found no DICOM file in this folder, expected {_EXPECTED}. For a folder of other files give a pattern, "
            f"such as {folder}/*.nii.gz"
        )
    return found


def _header(file: Path) -> Any:
    pydicom = require("pydicom", extra="dicom", purpose=f"reading {file}")
    with naming_files(file, _UNREADABLE, raises=ValueError):
        return pydicom.dcmread(file, stop_before_pixels=True)


def _describe_series(path: Path, headers: list[tuple[Path, Any]], gaps: bool, as_scan: bool) -> LabelImage:
    for file, what in odd_ones(headers):
        raise ValueError(f"{file}: found {what}, expected slices of one scan alone: move it out of the folder")
    rows_columns = sorted({(header.get("Rows"), header.get("Columns")) for _, header in headers}, key=str)
    if len(rows_columns) > 1 or None in rows_columns[0]:
        raise ValueError(f"{path}: found slices of rows x columns {rows_columns}, expected one size")
    for file, header in headers:
        if header.get("SamplesPerPixel", 1) != 1:
            expected = "a scan: one number per voxel" if as_scan else "a label: one integer per voxel"
            raise ValueError(f"{file}: found {header.SamplesPerPixel} values per pixel, expected {expected}")
    rows, columns = (int(size) for size in rows_columns[0])
    frames, affine = _placed(path, headers, (columns, rows), gaps=gaps, as_scan=as_scan)
    return LabelImage(
        path,
        format="DICOM series",
        shape=(columns, rows, len(frames)),
        dtype=f"{max(int(header.get('BitsAllocated', 0)) for _, header in headers)} bits",
        affine=affine,
        body=None,
        reader="pydicom",
        load=lambda: _load(frames),
    )


def _placed(
    path: Path, headers: list[tuple[Path, Any]], size: tuple[int, int], *, gaps: bool, as_scan: bool
) -> tuple[list[_Frame], np.ndarray | None]:
    """All frames in the order of their positions, and the affine in RAS."""
    try:
        slices = [part for file, header in headers for part in slices_of(file, header)]
    except NoPlace:
        if len(headers) > 1 or as_scan:
            raise
        # a label made without a scan's geometry can be counted, just as a picture can
        ((file, header),) = headers
        return [(file, frame) for frame in range(frame_count(header))], None
    names = [part.name if path.is_dir() else part.name.removeprefix(f"{path.name} ") for part in slices]
    stack = stack_slices(str(path), names, [part.plane for part in slices], size, gaps=gaps)
    if (
        as_scan
        and len(headers) < len(slices)
        and list(stack.order) not in (sorted(stack.order), sorted(stack.order)[::-1])
    ):
        raise ValueError(
            f"{path}: found frames that are not stored in the order of their positions, expected them from one end to the other"
        )
    for file, header in headers if as_scan else ():
        if len({_rescaling(header, frame) for frame in range(frame_count(header))}) > 1:
            raise ValueError(
                f"{file}: found frames of different RescaleSlope or RescaleIntercept, expected one for all: ITK takes the first"
            )
    affine = LPS_TO_RAS @ stack.affine
    if len(slices) == 1:
        thickness = thickness_of(headers[0][1])
        affine[:3, 2] *= thickness or 1.0
    return [(slices[k].file, slices[k].frame) for k in stack.order], affine if len(slices) > 1 or thickness else None


def _load(frames: Sequence[_Frame]) -> np.ndarray:
    """All slices with their rescaling applied, columns first; integral results stay integers."""
    pydicom = require("pydicom", extra="dicom", purpose=f"reading {frames[0][0]}")
    slices: list[np.ndarray] = []
    opened: Path | None = None
    for file, frame in frames:
        with naming_files(file, _UNREADABLE, raises=ValueError):
            if file != opened:
                dataset = pydicom.dcmread(file)
                pixels = dataset.pixel_array
                pixels, opened = pixels.reshape(-1, *pixels.shape[-2:]), file
            slices.append(_rescaled(dataset, frame, pixels[frame]))
    return np.stack(slices).transpose()


def _rescaled(dataset: Any, frame: int, pixels: np.ndarray) -> np.ndarray:
    slope, intercept = _rescaling(dataset, frame)
    if (slope, intercept) == (1.0, 0.0):
        return pixels
    scaled = pixels * slope + intercept
    exact = slope.is_integer() and intercept.is_integer()
    return scaled.astype(np.int64) if exact else scaled


def _rescaling(header: Any, frame: int) -> tuple[float, float]:
    slope, intercept = (
        frame_attribute(header, frame, "PixelValueTransformationSequence", keyword)
        for keyword in ("RescaleSlope", "RescaleIntercept")
    )
    return 1.0 if slope is None else float(slope), 0.0 if intercept is None else float(intercept)


def _files_of(path: Path) -> list[Path]:
    return sorted(part for part in path.iterdir() if part.is_file()) if path.is_dir() else [path]


def is_dicom(path: Path) -> bool:
    """Whether a path is a folder, as only a series is, or a DICOM file, whatever its ending."""
    return path.is_dir() or _has_magic(path)


def _check_scan(path: Path, allow_gaps: bool) -> LabelImage:
    from .dicom_series import check_dicom_series  # which describes the series by this module

    return check_dicom_series(path, allow_gaps)


FORMAT = Format(
    (".dcm",),
    describe_dicom,
    _files_of,
    readers=(("DICOM series (its folder), DICOM segmentation, with any ending", "pydicom"),),
    recognizes=is_dicom,
    check_scan=_check_scan,
)
