"""Folders of DICOM files: what a reader would take in silence is refused or said."""

from __future__ import annotations

import warnings
from pathlib import Path

from .dicom import MissingSlice, describe_dicom


def check_dicom_series(folder: Path, allow_gaps: bool = False) -> tuple[int, int, int]:
    """Look at the headers in a folder of DICOM files before it is read as one scan.

    ITK, by which MONAI reads such folders, takes the first of several series, puts slices of one position one behind the
    other, spreads the others evenly where one is missing, and gives a single slice a thickness of 1 mm.

    Args:
        folder: the folder of one scan.
        allow_gaps: warn of a missing slice instead of refusing the scan. Every slice that is there can be segmented, but the
            reader gives the scan another spacing, which makes places and volumes wrong.

    Returns:
        columns, rows and slices that the scan has by its headers.

    Raises:
        ValueError: the folder holds no DICOM files or those of several series, two slices share a position, slices have
            different sizes, a slice is missing, or a file is empty or damaged; the message names the folder or file.

    Warns:
        UserWarning: a slice is missing and that is allowed, or there is but one slice and its thickness is not 1 mm.
    """
    try:
        series = describe_dicom(folder)
    except MissingSlice as gap:
        if not allow_gaps:
            raise
        warnings.warn(f"{gap}; the scan is read as if its slices were evenly spaced", stacklevel=5)
        series = describe_dicom(folder, gaps=True)
    columns, rows, slices = series.shape
    if slices == 1 and series.affine is not None:
        thickness = sum(step**2 for step in series.affine[:3, 2]) ** 0.5
        if abs(thickness - 1) > 1e-3:
            warnings.warn(
                f"{folder}: found one slice of {thickness:g} mm, readers of single slices say 1 mm: multiply its volumes in ml "
                f"by {thickness:g}",
                stacklevel=5,
            )
    return columns, rows, slices
