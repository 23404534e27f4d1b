"""Whole-volume inference for slice networks, and the mask files it gives."""

from __future__ import annotations

from monai_margincal.inferers.mask_files import MaskWriter, mask_file_name
from monai_margincal.inferers.volume_slices import VolumeSliceInferer

__all__ = ["MaskWriter", "VolumeSliceInferer", "mask_file_name"]
