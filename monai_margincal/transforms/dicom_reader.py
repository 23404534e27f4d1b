"""A reader of DICOM scans that gives a single slice its own thickness."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from monai.config import PathLike
from monai.data.image_reader import ITKReader
from monai.utils import ensure_tuple

from ..formats.dicom import is_dicom
from ..formats.dicom_series import thickness_of_single_slice


class DicomReader(ITKReader):
    """Read DICOM for :class:`monai.transforms.LoadImage` as MONAI's ITK reader does, except for scans of one slice.

    ITK makes a single slice 1 mm thick without regard to its header, and every volume in millilitres is wrong by that factor.
    Here SliceThickness decides; without it the slice stays 1 mm thick. What ITK cannot place (see `check_dicom_series`) is read
    as ITK does.

    Takes the arguments of :class:`monai.data.ITKReader`. Other files are left to MONAI's other readers.

    Raises:
        ValueError: on ``read``: a path is neither DICOM nor a folder.
    """

    def read(self, data: Sequence[PathLike] | PathLike, **kwargs: Any) -> Any:
        """Open one file or folder, or several that become the channels of one image."""
        paths = [Path(name) for name in ensure_tuple(data)]
        for path in paths:
            if not is_dicom(path):
                raise ValueError(f"{path}: found another format, expected DICOM")
        images = super().read(data, **kwargs)
        for path, image in zip(paths, ensure_tuple(images), strict=True):
            sizes = tuple(image.GetLargestPossibleRegion().GetSize())
            if len(sizes) == 3 and sizes[2] == 1 and (thickness := thickness_of_single_slice(path)):
                spacing = image.GetSpacing()
                image.SetSpacing([spacing[0], spacing[1], thickness])
        return images
