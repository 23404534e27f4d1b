"""The overlay: a picture of every segmented scan, the slice with the most foreground, without and with the mask."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import nibabel
import numpy as np
import torch

from ...datasets.case_files import scan_of
from ...files import printable
from ...geometry import voxel_spacing
from ..kind import Destination, ScanFile
from ..segmentation_view import SegmentationView, save_overlay


class Overlay(ScanFile):
    """``NAME_overlay.png``: the class map over the image that the network saw, whose values are in [0, 1].

    Args:
        destination: where the results go.
        postfix: what is appended to the scan's name, in place of "overlay".
        image_name: what the image is called in the picture, such as "CT".
    """

    kind = "overlay"
    postfix = "overlay"
    ending = ".png"
    grid = "network"

    def __init__(self, destination: Destination, postfix: str | None = None, image_name: str = "image") -> None:
        super().__init__(destination, postfix)
        self.image_name = image_name

    def save(self, items: Mapping[Any, Any], key: str) -> None:
        """Draw the picture."""
        mask, image = items[key], items[self.destination.image_key]
        save_overlay(
            [view_in_lps(scan_of(mask.meta), image, mask)],
            self.path(mask.meta),
            class_names=self.destination.class_names,
            window=(0.0, 1.0),
            image_name=self.image_name,
        )


def view_in_lps(scan: str, image: torch.Tensor, mask: Any) -> SegmentationView:
    """Turn an image and its class map, (1, X, Y, Z) on one grid, into LPS order, as radiologists view them.

    Args:
        scan: file or folder of the scan.
        image: intensities.
        mask: class ids, a MetaTensor.

    Raises:
        ValueError: the two have different shapes.
    """
    orientations = nibabel.orientations
    affine = np.asarray(mask.affine.cpu(), dtype=np.float64)
    turn = orientations.ornt_transform(orientations.io_orientation(affine), orientations.axcodes2ornt("LPS"))
    turned = [orientations.apply_orientation(np.asarray(volume[0].cpu()), turn) for volume in (image, mask)]
    spacing = [0.0, 0.0, 0.0]
    for axis, length in zip(turn[:, 0].astype(int), voxel_spacing(affine), strict=True):
        spacing[axis] = length
    x, y, z = spacing
    voxels = int((turned[1] > 0).sum())
    return SegmentationView(
        title=printable(os.path.basename(scan)),  # noqa: PTH119 - of text that may name no file
        image=turned[0],
        truth=None,
        prediction=turned[1],
        spacing=(x, y, z),
        caption=f"{voxels:,} voxels",
    )
