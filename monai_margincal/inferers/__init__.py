"""Whole-volume inference for slice networks, and the files that it gives."""

from __future__ import annotations

from monai_margincal.inferers.case_files import case_file
from monai_margincal.inferers.class_volumes import SaveClassVolumesd, voxel_volume_mm3
from monai_margincal.inferers.dicom_segmentation import SaveDicomSegmentationd
from monai_margincal.inferers.failed_scans import FailedScans
from monai_margincal.inferers.foreground_probability import ForegroundProbabilityd, foreground_probability
from monai_margincal.inferers.mask_files import MaskWriter, mask_file_name
from monai_margincal.inferers.overlays import SaveOverlayd
from monai_margincal.inferers.scan_evaluator import ScanEvaluator
from monai_margincal.inferers.scans import ScanDataset
from monai_margincal.inferers.tensorrt_program import load_tensorrt_program
from monai_margincal.inferers.volume_slices import VolumeSliceInferer
from monai_margincal.inferers.weights import COPLENetCheckpointLoader

__all__ = [
    "COPLENetCheckpointLoader",
    "FailedScans",
    "ForegroundProbabilityd",
    "MaskWriter",
    "SaveClassVolumesd",
    "SaveDicomSegmentationd",
    "SaveOverlayd",
    "ScanDataset",
    "ScanEvaluator",
    "VolumeSliceInferer",
    "case_file",
    "foreground_probability",
    "load_tensorrt_program",
    "mask_file_name",
    "voxel_volume_mm3",
]
