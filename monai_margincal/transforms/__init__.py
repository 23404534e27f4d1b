"""Transforms for any place in a MONAI chain: readers, checks, label counts, the lungs of a CT, the colours of a frame."""

from __future__ import annotations

from .colour_jitter import RandColourJitterD, RandColourJitterd, RandColourJitterDict
from .count_labels import CountLabels, CountLabelsD, CountLabelsd, CountLabelsDict, counts_in_meta
from .dicom_reader import DicomReader
from .frame_reader import FrameReader
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
    "FrameReader",
    "NiftiReader",
    "RandColourJitterD",
    "RandColourJitterDict",
    "RandColourJitterd",
    "counts_in_meta",
    "find_lung_region",
]
