"""Bring the affine of a scan to one world space, whichever space its file uses.

MONAI takes every affine as pointing right, anterior, superior. Its readers convert the affines of files in the space left,
posterior, superior; its NRRD reader passes on the other spaces that NRRD knows unchanged, and only notes which one it was. A
mask would then be mirrored.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import torch
from monai.config import KeysCollection
from monai.data import MetaTensor
from monai.transforms import MapTransform, Transform
from monai.utils import ImageMetaKey, MetaKeys, SpaceKeys, TransformBackends

from ..geometry import signs_to_ras


class AffineToRAS(Transform):
    """Turn the affine of a MetaTensor to right, anterior, superior, from the space that ``meta["space"]`` names.

    Spaces are three directions in this order of axes, as words (``"left-anterior-superior"``, the way of NRRD) or letters
    (``"LAS"``). The voxels stay where they are in the array; ``meta["original_affine"]`` is turned as well and ``meta["space"]``
    becomes RAS. A tensor that does not name its space, such as one without metadata, is returned unchanged.

    Raises:
        ValueError: on call: ``meta["space"]`` is another text, such as ``"scanner-xyz"``, which does not tell left from right;
            the message names the file.

    Example:
        >>> import torch
        >>> from monai.data import MetaTensor
        >>> image = MetaTensor(torch.zeros(4, 4, 3), affine=torch.eye(4), meta={"space": "left-anterior-superior"})
        >>> AffineToRAS()(image).affine.diagonal().tolist()
        [-1.0, 1.0, 1.0, 1.0]
    """

    backend = [TransformBackends.TORCH]  # noqa: RUF012 - as MONAI declares it

    def __call__(self, img: torch.Tensor) -> torch.Tensor:
        """Return ``img``, of any shape, with its affine in RAS."""
        if not isinstance(img, MetaTensor) or img.meta.get(MetaKeys.SPACE, SpaceKeys.RAS) == SpaceKeys.RAS:
            return img
        space = img.meta[MetaKeys.SPACE]
        signs = signs_to_ras(str(space.value if isinstance(space, SpaceKeys) else space))
        if signs is None:
            name = img.meta.get(ImageMetaKey.FILENAME_OR_OBJ, "image in memory")
            raise ValueError(
                f"{name}: found the space {str(space)!r}, expected one that says where left is, such as "
                "'left-posterior-superior' or 'RAS'"
            )
        turned: MetaTensor = img.clone()
        turned.affine = _flipped(img.affine, signs)
        if MetaKeys.ORIGINAL_AFFINE in img.meta:
            turned.meta[MetaKeys.ORIGINAL_AFFINE] = _flipped(img.meta[MetaKeys.ORIGINAL_AFFINE], signs)
        turned.meta[MetaKeys.SPACE] = SpaceKeys.RAS
        return turned


def _flipped(affine: Any, signs: tuple[float, float, float]) -> torch.Tensor:
    matrix = torch.as_tensor(affine, dtype=torch.float64, device="cpu").clone()
    rows = min(3, matrix.shape[0] - 1)
    matrix[:rows] *= torch.tensor(signs[:rows], dtype=torch.float64, device=matrix.device)[:, None]
    return matrix


class AffineToRASd(MapTransform):
    """Dictionary version of :class:`AffineToRAS`; put it right after ``LoadImaged``.

    Args:
        keys: keys of the items.
        allow_missing_keys: skip a key that is absent.

    Raises:
        ValueError: on call: as :class:`AffineToRAS`.

    Example:
        >>> import torch
        >>> from monai.data import MetaTensor
        >>> image = MetaTensor(torch.zeros(4, 4, 3), affine=torch.eye(4), meta={"space": "LPS"})
        >>> AffineToRASd("image")({"image": image})["image"].affine.diagonal().tolist()
        [-1.0, -1.0, 1.0, 1.0]
    """

    backend = AffineToRAS.backend

    def __init__(self, keys: KeysCollection, allow_missing_keys: bool = False) -> None:
        super().__init__(keys, allow_missing_keys)
        self.turn = AffineToRAS()

    def __call__(self, data: Mapping[Hashable, torch.Tensor]) -> dict[Hashable, torch.Tensor]:
        """Turn the affines of the items of ``keys``."""
        items = dict(data)
        for key in self.key_iterator(items):
            items[key] = self.turn(items[key])
        return items


AffineToRASD = AffineToRASDict = AffineToRASd
