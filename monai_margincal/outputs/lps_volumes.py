"""NIfTI volumes of one grid, turned so that their slices are the right way up."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..geometry import GRID_TOLERANCE, corner_shift


def lps_volumes(
    files: Mapping[str, str | os.PathLike[str]],
) -> tuple[dict[str, np.ndarray], tuple[float, float, float]]:
    """Read volumes that lie on one grid and turn them into LPS order: x to the patient's left, y to the back, z to the head.

    Args:
        files: name -> NIfTI file of three axes; the first one says what the grid is.

    Returns:
        name -> values (X, Y, Z), and the edge lengths of a voxel in mm.

    Raises:
        ValueError: a volume does not lie on the grid of the first, or has not three axes.

    Example:
        >>> from monai_margincal.samples import sample_dir
        >>> volumes, spacing = lps_volumes({"ct": f"{sample_dir('lung_ct')}/images/lung2.nii.gz"})
        >>> volumes["ct"].shape
        (192, 192, 24)
    """
    import nibabel

    volumes: dict[str, np.ndarray] = {}
    spacing = (1.0, 1.0, 1.0)
    first = next(iter(files.values()))
    reference: Any = nibabel.load(first)
    if len(reference.shape) != 3:
        raise ValueError(f"{first}: found the shape {reference.shape}, expected three axes")
    reference = _turned(reference)
    for name, path in files.items():
        volume: Any = nibabel.load(path)
        # turned before they are compared: the same place in space may be stored in another order
        turned = _turned(volume) if len(volume.shape) == 3 else volume
        shift = corner_shift(reference.affine, turned.affine, reference.shape)
        if turned.shape != reference.shape or not shift.voxels <= GRID_TOLERANCE:
            raise ValueError(
                f"{path}: found shape {turned.shape} and affine {turned.affine.round(3).tolist()}, expected those of {first}: "
                f"{reference.shape} and {reference.affine.round(3).tolist()}"
            )
        volumes[name] = np.asanyarray(turned.dataobj)
        x, y, z = (float(edge) for edge in turned.header.get_zooms()[:3])
        spacing = (x, y, z)
    return volumes, spacing


def _turned(volume: Any) -> Any:
    from nibabel.orientations import axcodes2ornt, io_orientation, ornt_transform

    return volume.as_reoriented(ornt_transform(io_orientation(volume.affine), axcodes2ornt("LPS")))
