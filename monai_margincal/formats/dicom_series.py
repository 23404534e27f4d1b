"""DICOM scans, as folders or single files: what a reader would silently accept is refused or warned about."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..extras import require
from ..geometry import corner_points, voxel_spacing, voxel_volume_mm3
from .dicom import describe_dicom, is_dicom
from .slice_stack import STACK_TOLERANCE_MM, MissingSlice

if TYPE_CHECKING:
    from .label_image import LabelImage

#: where these differ, ITK mistakes the files of one series for those of several
_SPLITS = ("SeriesDate", "SeriesNumber", "SequenceName", "SliceThickness", "ImageOrientationPatient", "Rows", "Columns")


def check_dicom_series(scan: Path, allow_gaps: bool = False) -> LabelImage:
    """Look at the headers of a DICOM file or a folder of them before they are read as one scan.

    ITK, by which MONAI reads them, takes the first of several series, puts slices at one position one behind the other, and
    spreads the rest along the first one's normal with a single step, wherever they lie.

    Args:
        scan: the folder or the file of one scan.
        allow_gaps: warn about a missing slice instead of refusing the scan. Every slice that is there can be segmented, but the
            reader gives the scan another spacing, which makes positions and volumes wrong.

    Returns:
        what the headers say: columns, rows and slices, and where they lie.

    Raises:
        ValueError: the folder holds no DICOM files or those of several series, a localizer or a report lies among them, slices
            have different sizes, do not form a straight and even stack within 0.1 mm or do not say where they lie, a slice is
            missing, or a file is empty or damaged; the message names the folder or file.

    Warns:
        UserWarning: a slice is missing and that is allowed.
    """
    try:
        return describe_dicom(scan, as_scan=True)
    except MissingSlice as gap:
        if not allow_gaps:
            raise
        warnings.warn(f"{gap}; the scan is read as if its slices were evenly spaced", stacklevel=5)
        return describe_dicom(scan, gaps=True, as_scan=True)


def check_as_read(scan: Path, headers: LabelImage, shape: tuple[int, ...], affine: np.ndarray | None) -> None:
    """Compare what a reader made of a DICOM scan with what its headers say.

    Args:
        scan: the folder or the file.
        headers: what `check_dicom_series` returned.
        shape: columns, rows and slices as read, in any order.
        affine: voxel indices to mm in RAS as read, (4, 4); None if it is not known.

    Raises:
        ValueError: the numbers of voxels differ, or a corner lies more than 0.1 mm away.

    Warns:
        UserWarning: there is only one slice, and its thickness is not what the reader says.
    """
    if sorted(shape) != sorted(headers.shape):
        raise ValueError(
            f"read as {shape}, but the DICOM headers say {headers.shape} columns, rows and slices: {_why_not_all(scan)}"
        )
    if affine is None:
        return
    single = headers.shape[2] == 1
    if headers.affine is None:
        _warn_of_thickness(scan, "unknown thickness", "by it")
        return
    # the reader may have swapped axes: it is enough that the corners are the same points
    found, expected = corner_points(affine, shape), corner_points(headers.affine, headers.shape)
    apart = float(np.linalg.norm(found[:, np.newaxis] - expected, axis=2).min(axis=1).max())
    if not apart <= STACK_TOLERANCE_MM:
        raise ValueError(
            f"read with a corner {apart:.4g} mm from where the DICOM headers have it, expected at most {STACK_TOLERANCE_MM:g} "
            "mm: its reader does not understand this file; convert it, for example with dcm2niix"
        )
    if single and abs(voxel_volume_mm3(headers.affine) / voxel_volume_mm3(affine) - 1) > 1e-3:
        thickness = voxel_spacing(headers.affine)[2]
        _warn_of_thickness(scan, f"{thickness:g} mm", f"by {thickness:g}")


def thickness_of_single_slice(scan: Path) -> float | None:
    """SliceThickness in mm of a DICOM file or folder of one slice; None without it, and for several slices."""
    headers = describe_dicom(scan, gaps=True)
    return None if headers.affine is None or headers.shape[2] != 1 else voxel_spacing(headers.affine)[2]


def _warn_of_thickness(scan: Path, found: str, factor: str) -> None:
    warnings.warn(
        f"{scan}: found one slice of {found}, readers of single slices assume 1 mm: multiply its volumes in ml {factor}",
        stacklevel=5,
    )


def _why_not_all(scan: Path) -> str:
    """Why a reader may have left slices out: attributes that differ between the files, or else damage."""
    pydicom = require("pydicom", extra="dicom", purpose=f"reading {scan}")
    values: dict[str, set[str]] = {keyword: set() for keyword in _SPLITS}
    for file in scan.iterdir() if scan.is_dir() else ():
        if file.is_file() and is_dicom(file):
            header = pydicom.dcmread(file, stop_before_pixels=True)
            for keyword in _SPLITS:
                values[keyword].add(str(header.get(keyword, "")))
    mixed = [keyword for keyword in _SPLITS if len(values[keyword]) > 1]
    return f"the files differ in {', '.join(mixed)}, expected one series" if mixed else "is a file damaged?"
