"""Whole-volume inference for slice networks."""

from __future__ import annotations

from monai_margincal.inferers.volume_slices import VolumeSliceInferer

__all__ = ["VolumeSliceInferer"]
