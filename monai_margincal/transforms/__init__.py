"""Transforms that count labels, find the lungs or set a scan's affine right, for any place in a MONAI chain.

Names are imported on first use: counting files in a worker process needs the counter alone, not all of MONAI.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .count_labels import CountLabels, CountLabelsD, CountLabelsd, CountLabelsDict, counts_in_meta
    from .lung_region import (
        LungRegion,
        LungRegionCrop,
        LungRegionCropD,
        LungRegionCropd,
        LungRegionCropDict,
        find_lung_region,
    )
    from .ras_affine import AffineToRAS, AffineToRASD, AffineToRASd, AffineToRASDict
    from .voxel_counts import VoxelCounts, label_voxel_counts

_EXPORTS = {
    "CountLabels": "count_labels",
    "CountLabelsd": "count_labels",
    "CountLabelsD": "count_labels",
    "CountLabelsDict": "count_labels",
    "counts_in_meta": "count_labels",
    "LungRegion": "lung_region",
    "LungRegionCrop": "lung_region",
    "LungRegionCropd": "lung_region",
    "LungRegionCropD": "lung_region",
    "LungRegionCropDict": "lung_region",
    "find_lung_region": "lung_region",
    "AffineToRAS": "ras_affine",
    "AffineToRASd": "ras_affine",
    "AffineToRASD": "ras_affine",
    "AffineToRASDict": "ras_affine",
    "label_voxel_counts": "voxel_counts",
    "VoxelCounts": "voxel_counts",
}

__all__ = [
    "AffineToRAS",
    "AffineToRASD",
    "AffineToRASDict",
    "AffineToRASd",
    "CountLabels",
    "CountLabelsD",
    "CountLabelsDict",
    "CountLabelsd",
    "LungRegion",
    "LungRegionCrop",
    "LungRegionCropD",
    "LungRegionCropDict",
    "LungRegionCropd",
    "VoxelCounts",
    "counts_in_meta",
    "label_voxel_counts",
    "find_lung_region",
]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_EXPORTS[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
