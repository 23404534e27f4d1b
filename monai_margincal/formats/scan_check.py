"""What is checked before any reader of MONAI sees a scan: that it holds what its header promises, and spans a volume."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..geometry import spans_volume
from .label_image import LabelImage
from .voxel_stream import check_voxels


def check_described(path: Path, describe: Callable[[Path], LabelImage]) -> None:
    """Compare what the header of a scan promises with what its files hold, using a reader of our own.

    Raises:
        ValueError: they differ, the header is damaged or spans no volume; the message names the file.

    Warns:
        UserWarning: the header does not say where the voxels lie in space.
    """
    image = describe(path)
    if image.body is None:
        image.load()
    else:
        check_voxels(image.body)
    if image.affine is not None:
        require_volume(path, image.affine)
    elif len(image.shape) > 2:
        warnings.warn(
            f"{path}: found no spacing and directions of its axes in the header, or a space that is not known here, expected "
            "them: readers take voxels of 1 mm or something else",
            stacklevel=5,
        )


def require_volume(path: Path, affine: np.ndarray) -> None:
    """Raise a ValueError unless the columns of an affine span a volume."""
    if not spans_volume(affine):
        rows = [[float(f"{value:.6g}") for value in row] for row in affine[:3]]
        raise ValueError(
            f"{path}: found the header's affine {rows}, which spans no volume, expected three directions in mm"
        )
