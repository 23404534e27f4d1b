"""The mask: the class of every voxel, on the scan's own grid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..volume_file import VolumeFile


class Mask(VolumeFile):
    """``NAME_mask.nii.gz``: the class map, uint8.

    Args:
        destination: where the results go.
        postfix: what is appended to the scan's name, in place of "mask".
    """

    kind = "mask"
    postfix = "mask"
    dtype = "uint8"

    def save(self, items: Mapping[Any, Any], key: str) -> None:
        """Write the class map."""
        self.saver(items[key])
