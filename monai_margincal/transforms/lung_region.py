"""Where the lungs lie in a CT, found from the image alone, and a crop to that region that can be undone.

Lung lesions lie in the lung; shoulders, arms, the table and the belly cost time and invite false positives. The region
is a box, never a mask, and any doubt makes it larger: a lung that has lost its air looks like soft tissue, so the box is made
symmetric about the middle of the body, and a margin is added around it.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import nibabel
import numpy as np
import torch
from monai.config import KeysCollection, NdarrayOrTensor
from monai.data import MetaTensor
from monai.transforms import Crop, Cropd
from monai.utils import ImageMetaKey, TransformBackends, convert_to_tensor, ensure_tuple_rep

from ..extras import require
from ..geometry import voxel_spacing

#: key of the metadata that says what a scan was cropped to: "lungs", "body" or "image"
CROPPED_TO = "cropped_to"

#: Hounsfield units. Lung is air and tissue in one voxel, about -900 to -500; soft tissue and fluid lie above -150.
_AIR_BELOW = -400.0
#: air of the room, and the values that scanners write outside their field of view; lung lies above, even in emphysema
_ROOM_AIR_BELOW = -950.0
#: median of a lung that is cut by the edge of the plane; foam and folds of cloth lie below
_LUNG_AT_EDGE_ABOVE = -900.0
#: the search looks at voxels about this far apart, in mm: the box needs no more
_SEARCH_SPACING = 2.5
#: share of the largest piece of lung below which a piece is not lung (gas in the bowel, the trachea alone)
_SMALLEST_PIECE = 0.05
#: smallest share of the image that lungs, or a body, take up: lungs of a whole-body scan take about 1 %
_SMALLEST_SHARE = 0.002


class LungRegion(NamedTuple):
    """A box of voxels: ``start`` inclusive, ``stop`` exclusive, and what it holds: "lungs", "body" or "image"."""

    start: tuple[int, ...]
    stop: tuple[int, ...]
    kind: str


def find_lung_region(
    image: NdarrayOrTensor, affine: NdarrayOrTensor | None = None, margin_mm: Sequence[float] | float = 20.0
) -> LungRegion:
    """Find the box around both lungs of a chest CT.

    In every axial plane, air that reaches the edge of the plane and is as thin as the air of the room counts as outside; the
    remaining air, in pieces that are large enough, is lung. The box around it is joined with its mirror image about the middle
    of the body, so that a lung without air is kept, and widened by the margin. Where no lung is found, the box is that of the
    body; where no body is found either (air only, or no Hounsfield units), it is the whole image.

    Args:
        image: Hounsfield units, (X, Y, Z), any orientation, any dtype.
        affine: voxel indices to mm, (4, 4); by default 1 mm voxels with the axes towards right, anterior and superior.
        margin_mm: width of the margin in mm, one number or one per axis of the image; 0 or more.

    Returns:
        the box, within the image and never empty.

    Raises:
        ValueError: ``image`` is not of rank 3 or has an empty axis, or a margin is negative.

    Example:
        >>> import numpy as np
        >>> chest = np.full((60, 60, 20), -1000.0)
        >>> chest[10:50, 10:50] = 40.0  # a body in air
        >>> chest[14:26, 20:40, 5:15] = chest[34:46, 20:40, 5:15] = -850.0  # two lungs
        >>> find_lung_region(chest, margin_mm=0)
        LungRegion(start=(13, 19, 5), stop=(46, 40, 15), kind='lungs')
        >>> find_lung_region(np.zeros((9, 8, 7))).kind  # no air anywhere
        'body'
    """
    volume = convert_to_tensor(image, track_meta=False).detach()
    if volume.ndim != 3 or 0 in volume.shape:
        raise ValueError(f"expected an image of shape (X, Y, Z) without an empty axis, found {tuple(volume.shape)}")
    margin = _checked_margin(margin_mm)
    matrix = np.eye(4) if affine is None else np.asarray(torch.as_tensor(affine, device="cpu"), dtype=np.float64)
    spacing = np.array(voxel_spacing(matrix))
    spacing[~(spacing > 0)] = 1.0
    left_right, slices = _anatomical_axes(matrix)

    step = tuple(
        max(1, min(int(_SEARCH_SPACING / mm), size // 16)) for mm, size in zip(spacing, volume.shape, strict=True)
    )
    coarse = volume[tuple(slice(None, None, n) for n in step)].cpu().numpy().astype(np.float32, copy=False)
    air = coarse < _AIR_BELOW
    body = _largest_piece(~air)
    kind, found = "lungs", _lungs(coarse, air, slices)
    if found is None:
        kind, found = "body", body
    if found is None:
        return LungRegion((0, 0, 0), tuple(volume.shape), "image")
    start, stop = _bounds(found)
    if kind == "lungs" and body is not None:
        body_start, body_stop = _bounds(body)
        middle = body_start[left_right] + body_stop[left_right]  # twice the middle
        mirrored = middle - stop[left_right], middle - start[left_right]
        start[left_right], stop[left_right] = (
            min(start[left_right], mirrored[0]),
            max(stop[left_right], mirrored[1]),
        )
    # one search step may lie between the last voxel seen and the true edge
    beyond = np.ceil(margin / spacing).astype(int)
    low = (start - 1) * step + 1 - beyond
    high = stop * step + beyond
    low, high = np.clip(low, 0, None), np.minimum(high, volume.shape)
    return LungRegion(tuple(int(n) for n in low), tuple(int(n) for n in high), kind)


def _checked_margin(margin_mm: Sequence[float] | float) -> np.ndarray:
    margin = np.array(ensure_tuple_rep(margin_mm, 3), dtype=np.float64)
    if not (margin >= 0).all() or not np.isfinite(margin).all():
        raise ValueError(f"margin_mm must be one number or three, each 0 or more, found {margin_mm}")
    return margin


def _anatomical_axes(affine: np.ndarray) -> tuple[int, int]:
    """The array's axes that run closest to left-right and to feet-head."""
    world_axis = nibabel.orientations.io_orientation(affine)[:, 0]
    if sorted(world_axis) != [0, 1, 2]:  # an axis without direction: take the order of the array
        return 0, 2
    return int(np.flatnonzero(world_axis == 0)[0]), int(np.flatnonzero(world_axis == 2)[0])


def _ndimage() -> Any:
    return require("scipy.ndimage", extra="bundle", purpose="finding the lungs")


def _lungs(hu: np.ndarray, air: np.ndarray, slices: int) -> np.ndarray | None:
    """The voxels of the lungs' air, or None."""
    ndimage = _ndimage()
    # pieces do not extend to the next plane, where the trachea may open to the room
    in_plane = ndimage.generate_binary_structure(3, 1)
    for neighbour in (0, 2):
        in_plane[tuple(neighbour if axis == slices else 1 for axis in range(3))] = False
    pieces, number = ndimage.label(air, in_plane)
    if number == 0:
        return None
    edges = np.concatenate(
        [np.take(pieces, end, axis=axis).ravel() for axis in range(3) if axis != slices for end in (0, -1)]
    )
    at_edge = np.zeros(number + 1, dtype=bool)
    at_edge[edges] = True
    sizes = np.bincount(pieces.ravel(), minlength=number + 1)
    mean = np.bincount(pieces.ravel(), weights=np.nan_to_num(hu).ravel(), minlength=number + 1) / np.maximum(sizes, 1)
    thin = mean < _ROOM_AIR_BELOW
    outside = thin | (at_edge & (mean < _ROOM_AIR_BELOW + 20))
    volumes, number = ndimage.label(air & ~outside[pieces])
    if number == 0:
        return None
    sizes = np.bincount(volumes.ravel())
    sizes[0] = 0
    if sizes.max() < _SMALLEST_SHARE * hu.size:
        return None
    at_edges = np.bincount(volumes.ravel(), weights=at_edge[pieces].ravel()) / np.maximum(sizes, 1)
    large = sizes >= _SMALLEST_PIECE * sizes.max()
    # A table and blankets hold air as thin as lung, always at the edge of the plane. In a scan that is cut to the lungs, the
    # lungs lie at the edge too: if there is a lung within the plane, a piece at the edge must be as dense as lung.
    if (large & (at_edges < 0.5)).any():
        medians = ndimage.median(hu, volumes, np.arange(number + 1))
        large &= (at_edges < 0.5) | (medians > _LUNG_AT_EDGE_ABOVE)
    return large[volumes]


def _largest_piece(mask: np.ndarray) -> np.ndarray | None:
    pieces, number = _ndimage().label(mask)
    if number == 0:
        return None
    sizes = np.bincount(pieces.ravel())
    sizes[0] = 0
    if sizes.max() < _SMALLEST_SHARE * mask.size:
        return None
    return pieces == sizes.argmax()


def _bounds(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    (box,) = _ndimage().find_objects(mask.astype(np.int8))
    return np.array([axis.start for axis in box]), np.array([axis.stop for axis in box])


class LungRegionCrop(Crop):
    """Crop a chest CT in Hounsfield units to the region of its lungs, with an inverse that restores the whole grid.

    The box is that of :func:`find_lung_region`. Input (C, X, Y, Z) in any orientation, box found in the first channel; a
    MetaTensor keeps its place in space, says in ``meta["cropped_to"]`` what it was cropped to ("lungs", "body" or "image"), and
    :meth:`inverse` pads it with zeros to the grid it came from. The intensities must still be Hounsfield units.

    Args:
        margin_mm: width of the margin around the lungs in mm, one number or one per axis of the image.

    Raises:
        ValueError: a margin is negative; on call: the image is not of rank 4 or has an empty axis.

    Example:
        >>> import torch
        >>> from monai.data import MetaTensor
        >>> chest = torch.full((1, 60, 60, 20), -1000.0)
        >>> chest[:, 10:50, 10:50] = 40.0
        >>> chest[:, 14:46, 20:40, 5:15] = -850.0
        >>> crop = LungRegionCrop(margin_mm=2)
        >>> small = crop(MetaTensor(chest))
        >>> small.meta["cropped_to"], tuple(small.shape), tuple(crop.inverse(small).shape)
        ('lungs', (1, 37, 25, 14), (1, 60, 60, 20))
    """

    backend = [TransformBackends.TORCH]  # noqa: RUF012 - as MONAI declares it

    def __init__(self, margin_mm: Sequence[float] | float = 20.0) -> None:
        super().__init__(lazy=False)
        _checked_margin(margin_mm)
        self.margin_mm = margin_mm

    def region(self, img: torch.Tensor) -> LungRegion:
        """Find the box to which ``img``, (C, X, Y, Z), is cropped."""
        if img.ndim != 4:
            raise ValueError(f"expected an image of shape (C, X, Y, Z), found {tuple(img.shape)}")
        affine = img.affine if isinstance(img, MetaTensor) else None
        return find_lung_region(img[0], affine, self.margin_mm)

    def crop_to(self, img: torch.Tensor, region: LungRegion) -> torch.Tensor:
        """Crop ``img``, (C, X, Y, Z), to ``region``."""
        slices = tuple(slice(a, b) for a, b in zip(region.start, region.stop, strict=True))
        cropped = super().__call__(img, slices=slices)
        if cropped.shape != img.shape:
            cropped = cropped.clone()  # a view would keep the whole scan in memory, even in a cache
        if isinstance(cropped, MetaTensor):
            cropped.meta[CROPPED_TO] = region.kind
        return cropped

    def __call__(self, img: torch.Tensor, **_: Any) -> torch.Tensor:  # type: ignore[override]
        """Crop ``img``, (C, X, Y, Z), to its lungs."""
        return self.crop_to(img, self.region(img))


class LungRegionCropd(Cropd):
    """Dictionary version of :class:`LungRegionCrop`: one image says where the lungs are, all ``keys`` are cropped alike.

    A label may reach beyond the box, where the lungs were not found in full or where it marks something else. What is cut off
    is lost to training, so for the label named by ``label_key`` a warning gives its file and the number of voxels lost.

    Args:
        keys: keys of the items to crop, all on one grid (see :class:`monai_margincal.transforms.CheckSameGridd`).
        source_key: key of the CT in Hounsfield units in which the lungs are looked for.
        margin_mm: width of the margin around the lungs in mm, one number or one per axis of the image.
        allow_missing_keys: skip a key that is absent.
        label_key: key, one of ``keys``, of a label whose foreground (not 0) must not be lost silently; None for none.

    Raises:
        ValueError: a margin is negative, or ``label_key`` is none of ``keys``; on call: the CT is not of rank 4, or an item is
            on another grid than the CT.

    Example:
        >>> import torch
        >>> from monai.data import MetaTensor
        >>> chest = torch.full((1, 60, 60, 20), -1000.0)
        >>> chest[:, 10:50, 10:50] = 40.0
        >>> chest[:, 14:46, 20:40, 5:15] = -850.0
        >>> crop = LungRegionCropd(keys=["image", "label"], source_key="image", margin_mm=2)
        >>> both = crop({"image": MetaTensor(chest), "label": MetaTensor(torch.zeros_like(chest))})
        >>> tuple(both["label"].shape), tuple(crop.inverse(both)["label"].shape)
        ((1, 37, 25, 14), (1, 60, 60, 20))
    """

    backend = LungRegionCrop.backend
    cropper: LungRegionCrop

    def __init__(
        self,
        keys: KeysCollection,
        source_key: Hashable,
        margin_mm: Sequence[float] | float = 20.0,
        allow_missing_keys: bool = False,
        label_key: Hashable | None = None,
    ) -> None:
        super().__init__(keys, cropper=LungRegionCrop(margin_mm), allow_missing_keys=allow_missing_keys, lazy=False)
        if label_key is not None and label_key not in self.keys:
            raise ValueError(f"label_key must be one of keys {self.keys}, found {label_key!r}")
        self.source_key = source_key
        self.label_key = label_key

    def __call__(self, data: Mapping[Hashable, torch.Tensor], lazy: bool | None = None) -> dict[Hashable, torch.Tensor]:
        """Crop the items of ``keys``; ``lazy`` must not be set, because the box depends on the values."""
        items = dict(data)
        source = items[self.source_key]
        region = self.cropper.region(source)
        for key in self.key_iterator(items):
            if items[key].shape[1:] != source.shape[1:]:
                raise ValueError(
                    f"{key} has the spatial shape {tuple(items[key].shape[1:])}, expected that of {self.source_key}, "
                    f"{tuple(source.shape[1:])}"
                )
            whole = items[key]
            items[key] = self.cropper.crop_to(whole, region)
            if key == self.label_key and items[key].shape != whole.shape:
                _warn_of_lost_foreground(whole, items[key], region)
        return items


def _warn_of_lost_foreground(whole: torch.Tensor, cropped: torch.Tensor, region: LungRegion) -> None:
    before, after = int(torch.count_nonzero(whole)), int(torch.count_nonzero(cropped))
    if after < before:
        name = whole.meta.get(ImageMetaKey.FILENAME_OR_OBJ) if isinstance(whole, MetaTensor) else None
        warnings.warn(
            f"{name or 'label in memory'}: {before - after} of {before} labelled voxels lie outside the region of the "
            f"{region.kind} and are cut off; widen the margin or do without the crop",
            stacklevel=3,
        )


LungRegionCropD = LungRegionCropDict = LungRegionCropd
