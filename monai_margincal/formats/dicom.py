"""DICOM label series: a folder of single-frame files, or one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import naming_files
from ..extras import require
from ..geometry import LPS_TO_RAS, plane_affine
from .dicom_segmentation import describe_segmentation, is_segmentation
from .format import Format
from .label_image import LabelImage

_EXPECTED = "a DICOM series (a folder of one series) or a DICOM segmentation"
_UNREADABLE = f"cannot be read, expected {_EXPECTED}"


class MissingSlice(ValueError):
    """The slices of a series are not evenly spaced."""


def describe_dicom(path: Path, gaps: bool = False) -> LabelImage:
    """Read the headers of a DICOM file, or of all files of the one series in a folder.

    Files in the folder that are not DICOM are left out, as every DICOM reader does; an empty file or a damaged ``.dcm`` is
    an error.

    Args:
        path: file or folder.
        gaps: take a series in which a slice is missing.

    Raises:
        FileNotFoundError: there is no such file or folder.
        MissingSlice: without ``gaps``: two neighbouring slices lie much farther apart than the others do.
        ValueError: no DICOM file, several series, slices of different sizes, slices that share a position, or no pixels.
    """
    with naming_files(path, _UNREADABLE, raises=ValueError):
        files = _dicom_files(path) if path.is_dir() else [path]
        headers = [(file, _header(file)) for file in files]
        series = sorted({str(header.get("SeriesInstanceUID", "")) for _, header in headers})
        if len(series) > 1:
            raise ValueError(
                f"{path}: found {len(series)} DICOM series ({', '.join(series[:3])}), expected one per folder"
            )
        if len(headers) == 1 and is_segmentation(headers[0][1]):
            return describe_segmentation(path, headers[0][0], headers[0][1])
        if any(is_segmentation(header) for _, header in headers):
            raise ValueError(f"{path}: found {len(headers)} DICOM segmentations, expected one file per label")
        return _describe_series(path, headers, gaps)


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


def _describe_series(path: Path, headers: list[tuple[Path, Any]], gaps: bool) -> LabelImage:
    rows_columns = sorted({(header.get("Rows"), header.get("Columns")) for _, header in headers}, key=str)
    if len(rows_columns) > 1 or None in rows_columns[0]:
        raise ValueError(f"{path}: found slices of rows x columns {rows_columns}, expected one size")
    for file, header in headers:
        if header.get("SamplesPerPixel", 1) != 1:
            raise ValueError(
                f"{file}: found {header.SamplesPerPixel} values per pixel, expected a label: one integer per voxel"
            )
    ordered = _by_position(path, headers, gaps)
    rows, columns = rows_columns[0]
    frames = sum(int(header.get("NumberOfFrames") or 1) for _, header in ordered)
    bits = {int(header.get("BitsAllocated", 0)) for _, header in ordered}
    shape = (int(columns), int(rows), frames)
    files = [file for file, _ in ordered]
    return LabelImage(
        path,
        format="DICOM series",
        shape=shape,
        dtype=f"{max(bits)} bits",
        affine=_affine([header for _, header in ordered]),
        body=None,
        reader="pydicom",
        load=lambda: _load(files),
    )


def _by_position(path: Path, headers: list[tuple[Path, Any]], gaps: bool) -> list[tuple[Path, Any]]:
    if len(headers) == 1:
        return headers
    positions = []
    for file, header in headers:
        try:
            plane = plane_affine(header.ImageOrientationPatient, header.ImagePositionPatient, (1, 1))
        except (AttributeError, TypeError, ValueError):
            raise ValueError(f"{file}: found no position in the header, expected one per slice of {path}") from None
        positions.append(float(plane[:3, 2] @ plane[:3, 3]))
    order = np.argsort(positions, kind="stable")
    steps = np.diff(np.array(positions)[order])
    if (steps < 1e-3).any():
        same = int(np.flatnonzero(steps < 1e-3)[0])
        names = [headers[order[same + side]][0].name for side in (0, 1)]
        raise ValueError(f"{path}: found two slices at one position ({names[0]}, {names[1]}), expected one each")
    if not gaps and len(steps) > 1 and steps.max() > 1.5 * np.median(steps):
        at = int(np.argmax(steps))
        names = [headers[order[at + side]][0].name for side in (0, 1)]
        raise MissingSlice(
            f"{path}: found a gap of {steps.max():g} mm between {names[0]} and {names[1]}, expected slices every "
            f"{np.median(steps):g} mm: a slice is missing"
        )
    return [headers[i] for i in order]


def _affine(headers: list[Any]) -> np.ndarray | None:
    try:
        affine = plane_affine(
            headers[0].ImageOrientationPatient, headers[0].ImagePositionPatient, headers[0].PixelSpacing
        )
    except (AttributeError, TypeError, ValueError):
        return None
    if len(headers) > 1:
        last = np.array(headers[-1].ImagePositionPatient, dtype=float)
        affine[:3, 2] = (last - affine[:3, 3]) / (len(headers) - 1)
    elif "SliceThickness" in headers[0] and headers[0].SliceThickness is not None:
        affine[:3, 2] *= float(headers[0].SliceThickness)
    else:
        return None
    affine = LPS_TO_RAS @ affine
    return affine if np.isfinite(affine).all() else None


def _load(files: list[Path]) -> np.ndarray:
    """All slices with their rescaling applied, columns first; integral results stay integers."""
    pydicom = require("pydicom", extra="dicom", purpose=f"reading {files[0]}")
    slices = []
    for file in files:
        with naming_files(file, _UNREADABLE, raises=ValueError):
            dataset = pydicom.dcmread(file)
            pixels = dataset.pixel_array
            slope, intercept = (float(dataset.get(key, default)) for key, default in _RESCALE)
            if (slope, intercept) != (1.0, 0.0):
                scaled = pixels * slope + intercept
                exact = float(slope).is_integer() and float(intercept).is_integer()
                pixels = scaled.astype(np.int64) if exact else scaled
            slices.append(pixels.reshape(-1, *pixels.shape[-2:]))
    return np.concatenate(slices).transpose()


_RESCALE = (("RescaleSlope", 1.0), ("RescaleIntercept", 0.0))


def _files_of(path: Path) -> list[Path]:
    return sorted(part for part in path.iterdir() if part.is_file()) if path.is_dir() else [path]


def _is_dicom(path: Path) -> bool:
    """Whether a path is a folder, which nothing but a series is, or a DICOM file, whatever its ending."""
    return path.is_dir() or _has_magic(path)


def _check_scan(path: Path, allow_gaps: bool) -> tuple[int, ...] | None:
    from .dicom_series import check_dicom_series  # which describes the series by this module

    return check_dicom_series(path, allow_gaps) if path.is_dir() else None


FORMAT = Format(
    (".dcm",),
    describe_dicom,
    _files_of,
    readers=(("DICOM series (its folder), DICOM segmentation, with any ending", "pydicom"),),
    recognizes=_is_dicom,
    check_scan=_check_scan,
)
