"""Metrics: the confusion matrix, the intersection over union over a whole data set, handlers for MONAI's engines."""

from __future__ import annotations

from .confusion import class_dice, class_iou, class_precision, class_recall, class_union, confusion_matrix, count_pairs
from .dataset_iou import DatasetIoU
from .group_iou import GroupIoUHandler
from .handlers import DatasetIoUHandler
from .metrics_file import MetricsFile

__all__ = [
    "DatasetIoU",
    "DatasetIoUHandler",
    "GroupIoUHandler",
    "MetricsFile",
    "class_dice",
    "class_iou",
    "class_precision",
    "class_recall",
    "class_union",
    "confusion_matrix",
    "count_pairs",
]
