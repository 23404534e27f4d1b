"""NIfTI files: damage and headers that readers pass over in silence are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..files import verify_gzip
from ..geometry import spans_volume
from .nifti import FORMAT as NIFTI


def check_nifti(path: Path) -> None:
    """Look at a NIfTI file before it is read as a scan; other files pass.

    nibabel stops at the last voxel and so never sees the checksum behind it. MONAI takes voxels of 1 mm at the origin for a
    header that spans no volume: mask and volumes would be wrong.

    Args:
        path: file of a scan.

    Raises:
        ValueError: the header's affine is singular or not finite.
        OSError: the compressed data do not fit their checksum or are followed by something else; they raise other errors where
            they are cut off or cannot be decoded, see :func:`monai_margincal.files.verify_gzip`.
    """
    if not path.name.lower().endswith(NIFTI.suffixes):
        return
    if path.suffix.lower() == ".gz":
        verify_gzip(path)
    import nibabel

    header: Any = nibabel.load(path)  # of version 1 or 2
    affine = np.asarray(header.affine, dtype=np.float64)
    if not spans_volume(affine):
        rows = [[float(f"{value:.6g}") for value in row] for row in affine[:3]]
        raise ValueError(f"its header's affine {rows} spans no volume, expected three directions in mm")
