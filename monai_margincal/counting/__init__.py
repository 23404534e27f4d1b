"""Exact voxel counts per class: of values, arrays, one-hot labels and files. No torch is needed to count a file."""

from __future__ import annotations

from .as_class_counts import as_class_counts
from .case_record import CaseRecord, Failure
from .class_counts import ClassCounts
from .class_ids import declared_class_ids
from .label_file import count_file
from .one_hot import one_hot_voxel_counts
from .value_counter import ValueCounter
from .voxel_counts import VoxelCounts, label_voxel_counts

__all__ = [
    "CaseRecord",
    "ClassCounts",
    "Failure",
    "ValueCounter",
    "VoxelCounts",
    "as_class_counts",
    "count_file",
    "declared_class_ids",
    "label_voxel_counts",
    "one_hot_voxel_counts",
]
