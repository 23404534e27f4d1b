"""Transforms that count labels, compare grids, find the lungs or correct a scan's affine, for any place in a MONAI chain."""

from __future__ import annotations

from .count_labels import CountLabels, CountLabelsD, CountLabelsd, CountLabelsDict, counts_in_meta
from .dicom_reader import DicomReader
from .lung_region import (
    LungRegion,
    LungRegionCrop,
    LungRegionCropD,
    LungRegionCropd,
    LungRegionCropDict,
    find_lung_region,
)
from .nifti_reader import NiftiReader
from .ras_affine import AffineToRAS, AffineToRASD, AffineToRASd, AffineToRASDict
from .same_grid import CheckSameGridD, CheckSameGridd, CheckSameGridDict

__all__ = [
    "AffineToRAS",
    "AffineToRASD",
    "AffineToRASDict",
    "AffineToRASd",
    "CheckSameGridD",
    "CheckSameGridDict",
    "CheckSameGridd",
    "CountLabels",
    "CountLabelsD",
    "CountLabelsDict",
    "CountLabelsd",
    "LungRegion",
    "LungRegionCrop",
    "LungRegionCropD",
    "LungRegionCropDict",
    "LungRegionCropd",
    "DicomReader",
    "NiftiReader",
    "counts_in_meta",
    "find_lung_region",
]
