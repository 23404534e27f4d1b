"""Where voxels lie in the patient: orientation, size and volume of a voxel, and whether two grids are the same.

An affine takes voxel indices to millimetres, (4, 4) float64. Inside this package the millimetres run to the right, to the
front and to the head (RAS, as in NIfTI); DICOM, ITK and most NRRD files count to the left and to the back instead (LPS).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

#: Points in LPS and in RAS differ by the sign of the first two coordinates; the matrix is its own inverse.
LPS_TO_RAS = np.diag([-1.0, -1.0, 1.0, 1.0])
LPS_TO_RAS.setflags(write=False)

#: How far a corner of a label's grid may lie from that of its image, in voxels: for training, findings and check-bundle alike.
#: Rounding must pass: over 512 x 512 x 150 voxels of 0.5 mm, turned by up to 20 degrees, an affine in float32 moves a corner by
#: 0.0001 voxels, one rounded to 6, 5 and 4 decimals by up to 0.002, 0.015 and 0.14. The smallest mistake that software makes, a
#: voxel's corner taken for its centre, moves every point by 0.5 and must not pass. A quarter lies between the two, and is finer
#: than anyone can draw labels.
GRID_TOLERANCE = 0.25

#: Directions whose product is below this share of the product of their lengths lie in a plane, apart from rounding.
_FLAT = 1e-6

#: per world axis: the direction that counts up in RAS, and its opposite
_DIRECTIONS = (("right", "left"), ("anterior", "posterior"), ("superior", "inferior"))

_Default = TypeVar("_Default")
_RAISE: Any = object()


def signs_to_ras(space: str) -> tuple[float, float, float] | None:
    """Sign per coordinate that turns points of a named space to RAS; None for a name that does not say where left is.

    Args:
        space: three directions in the order of RAS, as words (``"left-anterior-superior"``, as in NRRD) or letters
            (``"LAS"``), in any letter case.

    Example:
        >>> signs_to_ras("left-posterior-superior"), signs_to_ras("LAS"), signs_to_ras("scanner-xyz")
        ((-1.0, -1.0, 1.0), (-1.0, 1.0, 1.0), None)
    """
    words = space.lower().split("-") if "-" in space else list(space.lower())
    if len(words) != 3 or any(
        word not in (up, up[0], down, down[0]) for word, (up, down) in zip(words, _DIRECTIONS, strict=True)
    ):
        return None
    x, y, z = (1.0 if word in (up, up[0]) else -1.0 for word, (up, _) in zip(words, _DIRECTIONS, strict=True))
    return x, y, z


def affine_of_axes(directions: Sequence[Sequence[float]], origin: Sequence[float] | None) -> np.ndarray | None:
    """Put an affine together from one direction per axis of the array and the position of the first voxel.

    Args:
        directions: step from one voxel to the next, in mm, per spatial axis: two vectors of two numbers or three of three.
        origin: position of the first voxel in mm, as many numbers; None, or a different number of them, puts it at 0.

    Returns:
        (4, 4) float64; a plane gets a third axis of 1 mm. None for any other number of axes, or if a number is not finite.

    Example:
        >>> affine_of_axes([[0.5, 0], [0, 0.7]], [3, 4]).tolist()
        [[0.5, 0.0, 0.0, 3.0], [0.0, 0.7, 0.0, 4.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    """
    if len(directions) not in (2, 3) or any(len(vector) != len(directions) for vector in directions):
        return None
    affine = np.eye(4)
    for axis, vector in enumerate(directions):
        affine[: len(vector), axis] = vector
    if origin is not None and len(origin) == len(directions):
        affine[: len(origin), 3] = origin
    return affine if np.isfinite(affine).all() else None


def plane_affine(orientation: ArrayLike, position: ArrayLike, pixel_spacing: Sequence[Any]) -> np.ndarray:
    """Affine of one DICOM slice, from (column, row, distance from the slice in mm) to mm in LPS.

    `plane[:3, 2] @ plane[:3, 3]` is the slice's position along its own normal, by which the slices of a series are put in order.

    Args:
        orientation: ImageOrientationPatient: unit vectors along a row and along a column, 6 numbers.
        position: ImagePositionPatient: position of the first pixel in mm, 3 numbers.
        pixel_spacing: PixelSpacing: mm from row to row, then from column to column.

    Returns:
        (4, 4) float64.

    Raises:
        ValueError: an argument has a different number of values.

    Example:
        >>> plane_affine([1, 0, 0, 0, 1, 0], [-5, 7, 20], [0.7, 0.5]).tolist()
        [[0.5, 0.0, 0.0, -5.0], [0.0, 0.7, 0.0, 7.0], [0.0, 0.0, 1.0, 20.0], [0.0, 0.0, 0.0, 1.0]]
    """
    along_row, along_column = np.asarray(orientation, dtype=np.float64).reshape(2, 3)
    row_step, column_step = (float(step) for step in pixel_spacing)
    affine = np.eye(4)
    affine[:3, 0] = along_row * column_step
    affine[:3, 1] = along_column * row_step
    affine[:3, 2] = np.cross(along_row, along_column)
    affine[:3, 3] = np.asarray(position, dtype=np.float64)
    return affine


def voxel_spacing(affine: ArrayLike) -> tuple[float, float, float]:
    """Length of a voxel along each axis of the array in mm, never negative.

    Args:
        affine: (4, 4), or its linear part, (3, 3).

    Example:
        >>> voxel_spacing(np.diag([-0.5, 0.5, 4.0, 1.0]))
        (0.5, 0.5, 4.0)
    """
    x, y, z = np.linalg.norm(np.asarray(affine, dtype=np.float64)[:3, :3], axis=0).tolist()
    return x, y, z


def axis_order(affine: ArrayLike) -> tuple[int, int, int]:
    """The axes of the array that run most along right, anterior and superior, in this order, whichever way they count.

    This is the order of the axes after MONAI's ``Orientationd(axcodes="RAS")``; `axis_codes` also gives the directions.

    Args:
        affine: (4, 4), or its linear part, (3, 3); it must span a volume.

    Example:
        >>> stored = np.array([[0.0, 0.0, -0.8], [0.0, -0.8, 0.0], [-3.0, 0.0, 0.0]])  # inferior, posterior, left
        >>> axis_order(stored), axis_codes(stored)
        ((2, 1, 0), 'IPL')
    """
    turn = _orientation(affine)
    x, y, z = (int(np.flatnonzero(turn[:, 0] == world)[0]) for world in range(3))
    return x, y, z


def axis_codes(affine: ArrayLike) -> str:
    """The direction in which each axis of the array counts up, one letter each, such as "RAS" or "IPL".

    Args:
        affine: (4, 4), or its linear part, (3, 3); it must span a volume.
    """
    return "".join(
        _DIRECTIONS[int(world)][0 if sign > 0 else 1][0].upper() for world, sign in _orientation(affine).tolist()
    )


def _orientation(affine: ArrayLike) -> np.ndarray:
    """World axis and sign per axis of the array, (3, 2)."""
    # nibabel decides oblique axes as MONAI does, because MONAI asks nibabel too
    from nibabel.orientations import io_orientation

    matrix = np.eye(4)
    matrix[:3, :3] = np.asarray(affine, dtype=np.float64)[:3, :3]
    return io_orientation(matrix)


def spans_volume(affine: ArrayLike) -> bool:
    """Whether an affine is finite and its three directions, apart from rounding, do not lie in one plane.

    Args:
        affine: (4, 4), or its linear part, (3, 3).

    Example:
        >>> spans_volume(np.eye(4)), spans_volume(np.diag([1.0, 1.0, 0.0, 1.0]))
        (True, False)
    """
    matrix = np.asarray(affine, dtype=np.float64)
    # `>` and not `>=`: a direction of length 0 makes both sides 0
    return bool(np.isfinite(matrix).all() and _volume(matrix) > _FLAT * np.prod(voxel_spacing(matrix)))


def _volume(matrix: np.ndarray) -> float:
    # a flipped axis makes the product negative; a volume is not
    return abs(float(np.dot(np.cross(matrix[:3, 0], matrix[:3, 1]), matrix[:3, 2])))


@overload
def voxel_volume_mm3(affine: ArrayLike) -> float: ...
@overload
def voxel_volume_mm3(affine: ArrayLike, default: _Default) -> float | _Default: ...
def voxel_volume_mm3(affine: ArrayLike, default: Any = _RAISE) -> Any:
    """Volume of a voxel in mm³: the absolute determinant of the affine's linear part, positive for any orientation.

    Args:
        affine: (4, 4), or its linear part, (3, 3).
        default: returned for an affine that spans no volume, see `spans_volume`; without it that is an error.

    Raises:
        ValueError: the affine spans no volume, and there is no ``default``.

    Example:
        >>> voxel_volume_mm3(np.diag([-0.5, 0.5, 4.0, 1.0]))
        1.0
        >>> print(voxel_volume_mm3(np.zeros((4, 4)), default=None))
        None
    """
    matrix = np.asarray(affine, dtype=np.float64)[:3, :3]
    if spans_volume(matrix):
        return _volume(matrix)
    if default is not _RAISE:
        return default
    raise ValueError(f"found the affine {matrix.tolist()}, which spans no volume, expected three directions in mm")


def without_trailing_ones(shape: Sequence[int]) -> tuple[int, ...]:
    """A shape without the axes of size 1 at its end, in which formats differ; at least one axis stays.

    Example:
        >>> without_trailing_ones((512, 512, 1, 1)), without_trailing_ones((1, 1))
        ((512, 512), (1,))
    """
    kept = list(shape)
    while len(kept) > 1 and kept[-1] == 1:
        kept.pop()
    return tuple(kept)


class CornerShift(NamedTuple):
    """How far apart two grids of one shape are where they are furthest apart.

    Attributes:
        mm: the distance.
        voxels: the same, in units of the first grid's shortest voxel edge.
    """

    mm: float
    voxels: float


def corner_shift(affine: ArrayLike, other: ArrayLike, shape: Sequence[int]) -> CornerShift:
    """How far a corner of a grid moves from one affine to another.

    Two affines differ by an affine map, so no voxel between the corners moves further than one of them. Test
    ``shift.voxels <= GRID_TOLERANCE`` and not its opposite, which would let NaN pass.

    Args:
        affine: of the first grid, (4, 4). Edges of length 0, as in planes, do not count as its shortest; 1 mm if all are 0.
        other: of the second grid, (4, 4).
        shape: voxels of both along up to three axes; further axes are left out.

    Returns:
        NaN in both fields if an affine holds NaN.

    Example:
        >>> moved = np.diag([0.5, 0.5, 4.0, 1.0])
        >>> moved[0, 3] = 0.1
        >>> corner_shift(np.diag([0.5, 0.5, 4.0, 1.0]), moved, (512, 512, 60))
        CornerShift(mm=0.1, voxels=0.2)
    """
    first, second = (np.asarray(matrix, dtype=np.float64) for matrix in (affine, other))
    mm = float(np.linalg.norm(corner_points(second - first, shape), axis=1).max())
    edges = [edge for edge in voxel_spacing(first) if edge > 0]
    return CornerShift(mm, mm / min(edges, default=1.0))


def corner_points(affine: ArrayLike, shape: Sequence[int]) -> np.ndarray:
    """Where the voxels in the corners of a grid lie.

    Args:
        affine: (4, 4).
        shape: voxels along up to three axes; further axes are left out.

    Returns:
        (8, 3), the last axis fastest.

    Example:
        >>> corner_points(np.diag([0.5, 0.5, 4.0, 1.0]), (3, 1, 2))[[0, -1]].tolist()
        [[0.0, 0.0, 0.0], [1.0, 0.0, 4.0]]
    """
    sizes = (*shape, 1, 1, 1)[:3]
    corners = np.array([(*corner, 1.0) for corner in itertools.product(*((0.0, size - 1.0) for size in sizes))])
    return (corners @ np.asarray(affine, dtype=np.float64).T)[:, :3]
