"""The slice of a labelled image that shows most of its rare classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from nibabel import orientations

__all__ = ["RareSlice", "plane_of", "rarest_slice"]

#: as a radiologist views a slice: the patient's right on the left, the front on top
_SHOWN = orientations.axcodes2ornt("LPS")


class RareSlice(NamedTuple):
    """A slice and how much of the rare classes it shows.

    Args:
        score: voxels of every class but the background, each divided by the voxels of its class in the training labels.
        axis: the array's axis that the slices follow; None where the image is a plane.
        at: the place of the slice along the axis.
    """

    score: float
    axis: int | None
    at: int


def rarest_slice(label: torch.Tensor, affine: torch.Tensor, class_voxels: Sequence[int]) -> RareSlice:
    """Find the axial slice, or in a plane the whole of it, in which the rare classes are seen best.

    Args:
        label: class ids, (1, X, Y, Z) or (1, X, Y); what is not 1 ... C - 1 does not count.
        affine: (4, 4), from voxels to RAS; of a plane it does not matter.
        class_voxels: (C,), voxels of every class in the training labels, the background's first.

    Example:
        >>> label = torch.zeros(1, 2, 2, 3)
        >>> label[0, :, :, 0], label[0, 0, 0, 2] = 1, 2  # four voxels of a common class, one of a rare one
        >>> rarest_slice(label, torch.eye(4), [1000, 100, 10])
        RareSlice(score=0.1, axis=2, at=2)
    """
    volume = label[0]
    axis = _axial_axis(affine) if volume.ndim == 3 else None
    others = [other for other in range(volume.ndim) if other != axis]
    scores = sum((volume == k).sum(others).double() / max(voxels, 1) for k, voxels in enumerate(class_voxels) if k > 0)
    scores = torch.as_tensor(scores).reshape(-1)
    best = int(scores.argmax())
    return RareSlice(float(scores[best]), axis, best)


def plane_of(image: torch.Tensor, affine: torch.Tensor, chosen: RareSlice) -> torch.Tensor:
    """Cut a slice out and turn it the right way up.

    Args:
        image: (channels, X, Y, Z) or (channels, X, Y), the width of a plane first.
        affine: as for `rarest_slice`.
        chosen: the slice.

    Returns:
        (channels, rows, columns): a slice as a radiologist views it, a plane as its rows and columns are stored.

    Example:
        >>> image = torch.arange(4).reshape(1, 2, 2, 1)
        >>> plane_of(image, torch.eye(4), RareSlice(1.0, 2, 0))  # the array begins at the patient's left, back and feet
        tensor([[[3, 1],
                 [2, 0]]])
    """
    if chosen.axis is None:
        return image.transpose(1, 2)
    thin = image.narrow(chosen.axis + 1, chosen.at, 1).cpu().numpy()
    turn = orientations.ornt_transform(orientations.io_orientation(affine.cpu().numpy()), _SHOWN)
    planes = [orientations.apply_orientation(channel, turn)[:, :, 0].T.copy() for channel in thin]
    return torch.stack([torch.from_numpy(plane) for plane in planes])


def _axial_axis(affine: torch.Tensor) -> int:
    """The axis of an array that runs between feet and head."""
    codes = orientations.io_orientation(affine.cpu().numpy())[:, 0]
    return int((codes == 2).nonzero()[0][0])
