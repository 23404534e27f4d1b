"""A picture of every segmented scan: the slice with the most foreground, without and with the mask."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import nibabel
import numpy as np
import torch
from monai.config import KeysCollection
from monai.transforms import MapTransform

from ..datasets.case_files import case_file, scan_of
from ..geometry import voxel_spacing
from .segmentation_view import SegmentationView, save_overlay


class SaveOverlayd(MapTransform):
    """Draw the class map over the image that the network saw; to be used before the transforms are inverted.

    Args:
        keys: key of the class map, (1, X, Y, Z), a MetaTensor.
        image_key: key of the prepared image on the same grid, (1, X, Y, Z), values in [0, 1].
        output_dir: folder of all results.
        output_postfix: what is put behind the scan's name.
        data_root_dir: folder of the data set; the scan's subfolder below it is kept.
        class_names: names of the classes by id; the first is the background.
        allow_missing_keys: skip a key that is absent.

    Raises:
        ValueError: on call: map and image have different shapes.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from monai.data import MetaTensor
        >>> image = MetaTensor(torch.rand(1, 16, 16, 3), meta={"filename_or_obj": "ct.nii.gz"})
        >>> mask = MetaTensor((image > 0.8).to(torch.uint8)).copy_meta_from(image)
        >>> folder = tempfile.mkdtemp()
        >>> _ = SaveOverlayd("pred", "image", folder)({"image": image, "pred": mask})
        >>> [path.name for path in Path(folder).iterdir()]
        ['ct_overlay.png']
    """

    def __init__(
        self,
        keys: KeysCollection,
        image_key: str,
        output_dir: str | os.PathLike[str],
        output_postfix: str = "overlay",
        data_root_dir: str | os.PathLike[str] = "",
        class_names: Sequence[str] = ("background", "lesion"),
        allow_missing_keys: bool = False,
    ) -> None:
        super().__init__(keys, allow_missing_keys)
        self.image_key = image_key
        self.output_dir = output_dir
        self.output_postfix = output_postfix
        self.data_root_dir = data_root_dir
        self.class_names = list(class_names)

    def __call__(self, data: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        """Draw the picture of ``data``; pass it through."""
        items = dict(data)
        for key in self.key_iterator(items):
            mask = items[key]
            target = case_file(mask.meta, self.output_dir, self.output_postfix, ".png", self.data_root_dir)
            view = _view(scan_of(mask.meta), items[self.image_key], mask)
            save_overlay([view], target, class_names=self.class_names, window=(0.0, 1.0))
        return items


def _view(scan: str, image: torch.Tensor, mask: Any) -> SegmentationView:
    """Both in LPS order, as radiologists look at them."""
    orientations = nibabel.orientations
    affine = np.asarray(mask.affine.cpu(), dtype=np.float64)
    turn = orientations.ornt_transform(orientations.io_orientation(affine), orientations.axcodes2ornt("LPS"))
    turned = [orientations.apply_orientation(np.asarray(volume[0].cpu()), turn) for volume in (image, mask)]
    spacing = [0.0, 0.0, 0.0]
    for axis, length in zip(turn[:, 0].astype(int), voxel_spacing(affine), strict=True):
        spacing[axis] = length
    x, y, z = spacing
    voxels = int((turned[1] > 0).sum())
    return SegmentationView(os.path.basename(scan), turned[0], None, turned[1], (x, y, z), f"{voxels:,} voxels")  # noqa: PTH119
