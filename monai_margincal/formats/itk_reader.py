"""The general reader for NRRD and MetaImage: SimpleITK, imported when a file needs it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..extras import require


def load_with_simpleitk(path: Path) -> np.ndarray:
    """All voxels of an image file in their native type, the fastest axis first as in the header.

    Raises:
        ValueError: the file holds several values per voxel.
    """
    SimpleITK = require("SimpleITK", extra="bundle", purpose=f"reading {path}")
    reader = SimpleITK.ImageFileReader()
    reader.SetFileName(str(path))
    image = reader.Execute()
    if image.GetNumberOfComponentsPerPixel() != 1:
        raise ValueError(
            f"{path}: found {image.GetNumberOfComponentsPerPixel()} values per voxel, expected a label: one integer per voxel"
        )
    array = SimpleITK.GetArrayFromImage(image)
    return array.transpose()
