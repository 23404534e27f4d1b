"""What inference writes about a scan: masks, a table of volumes, pictures, probabilities, DICOM SEG."""

from __future__ import annotations

from .class_volumes import SaveClassVolumesd
from .dicom_seg import SaveDicomSegmentationd
from .foreground_probability import ForegroundProbabilityd, foreground_probability
from .mask_files import MaskWriter
from .overlays import SaveOverlayd
from .segmentation_view import SegmentationView, load_view, save_overlay

__all__ = [
    "ForegroundProbabilityd",
    "MaskWriter",
    "SaveClassVolumesd",
    "SaveDicomSegmentationd",
    "SaveOverlayd",
    "SegmentationView",
    "foreground_probability",
    "load_view",
    "save_overlay",
]
