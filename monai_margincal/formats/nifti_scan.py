"""NIfTI files: damage and headers that readers pass over in silence are refused."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from ..files import verify_gzip
from ..geometry import spans_volume
from .nifti import FORMAT as NIFTI
from .nifti_geometry import has_orientation, nifti_affine


def check_nifti(path: Path) -> None:
    """Look at a NIfTI file before it is read as a scan; other files pass.

    nibabel stops at the last voxel and so never sees the checksum behind it. MONAI takes voxels of 1 mm at the origin for a
    header that spans no volume: mask and volumes would be wrong.

    Args:
        path: file of a scan.

    Raises:
        ValueError: the header's affine is singular or not finite, its unit of length unknown, its quaternion none.
        OSError: the compressed data do not fit their checksum or are followed by something else; they raise other errors where
            they are cut off or cannot be decoded, see :func:`monai_margincal.files.verify_gzip`.

    Warns:
        UserWarning: the header says sizes alone, so that left and right are a guess.
    """
    if not path.name.lower().endswith(NIFTI.suffixes):
        return
    if path.suffix.lower() == ".gz":
        verify_gzip(path)
    import nibabel

    image: Any = nibabel.load(path)  # of version 1 or 2
    affine = nifti_affine(image.header, str(path))
    if not spans_volume(affine):
        rows = [[float(f"{value:.6g}") for value in row] for row in affine[:3]]
        raise ValueError(f"its header's affine {rows} spans no volume, expected three directions in mm")
    if not has_orientation(image.header):
        warnings.warn(
            f"{path}: found neither an sform nor a qform in the NIfTI header, expected one: left and right are taken as nibabel "
            "takes them (first axis to the left), the sizes from pixdim",
            stacklevel=5,
        )
