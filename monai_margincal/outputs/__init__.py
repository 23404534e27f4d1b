"""What inference writes about a scan: masks, a table of volumes, pictures, probabilities, DICOM SEG."""

from __future__ import annotations

from .kind import Destination, Output, ScanFile
from .outputs import Outputs
from .save_outputs import MapsFromLogitsd, SaveImageOutputsd

__all__ = ["Destination", "MapsFromLogitsd", "Output", "Outputs", "SaveImageOutputsd", "ScanFile"]
