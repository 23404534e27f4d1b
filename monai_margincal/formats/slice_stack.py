"""Slices of a series: the order they lie in, and how far they are from one straight and even stack.

Readers know a volume as a grid: they take position and directions from its first slice and one step for all slices, and put them
one behind the other along the first slice's normal. Slices that lie elsewhere are moved without a word, and with them every mask,
distance and volume. `stack_slices` is the one place that decides what is such a stack, for scans, labels and segmentations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..geometry import corner_shift, voxel_spacing

#: How far a corner of a slice may lie from where the stack puts it, in mm. Scanners round positions to 0.01 mm or so.
STACK_TOLERANCE_MM = 0.1
#: Slices closer than this, in mm, are at one position.
_SAME_MM = 1e-3
#: A step of more than this multiple of the usual one is a gap.
_GAP = 1.5

_ALLOWED = f"expected at most {STACK_TOLERANCE_MM:g} mm"
_STRAIGHTEN = (
    "resample the series to a straight grid first, dcm2niix does so for CT and writes a file with 'Tilt' in its name; 3D Slicer "
    "calls it acquisition geometry regularization"
)


class MissingSlice(ValueError):
    """Two neighbouring slices lie much farther apart than the others do."""


class SliceStack(NamedTuple):
    """Slices that lie on one grid.

    Attributes:
        order: which slice is the first, the second and so on, along the normal.
        affine: (column, row, slice) to mm in LPS, (4, 4). The third axis of a single slice is its normal, 1 mm long.
    """

    order: tuple[int, ...]
    affine: np.ndarray


def stack_slices(
    where: str, names: Sequence[str], planes: Sequence[np.ndarray], size: tuple[int, int], *, gaps: bool = False
) -> SliceStack:
    """Put slices in order and make sure that they form a straight and even stack.

    Args:
        where: the file or folder, for messages.
        names: of the slices within it, for messages.
        planes: per slice (column, row, mm along the normal) to mm in LPS, (4, 4), see `plane_affine`; at least one.
        size: columns and rows of each.
        gaps: take steps of more than 1.5 times the usual one. The affine then spreads the slices evenly, as readers do.

    Raises:
        MissingSlice: without ``gaps``: there is such a step.
        ValueError: a corner of a slice lies more than 0.1 mm from where a straight and even stack has it, or two slices are at
            one position; the message says which and by how much.

    Example:
        >>> planes = [np.eye(4) for _ in range(3)]
        >>> for plane, height in zip(planes, (5.0, 0.0, 2.5)):
        ...     plane[2, 3] = height
        >>> stack = stack_slices("ct", "abc", planes, (4, 4))
        >>> stack.order, stack.affine.diagonal().tolist()
        ((1, 2, 0), [1.0, 1.0, 2.5, 1.0])
        >>> planes[2][0, 3] = 7.0
        >>> stack_slices("ct", "abc", planes, (4, 4))
        Traceback (most recent call last):
        ValueError: ct: found the slice c 7 mm beside the others, expected at most 0.1 mm: the slices do not form a straight stack
    """
    if len(planes) == 1:
        return SliceStack((0,), np.array(planes[0], dtype=np.float64))
    order, heights, normal = _in_order(where, names, planes, size)
    ordered = [names[k] for k in order]
    heights = _even(where, ordered, heights, gaps)

    stack, count = np.asarray(planes, dtype=np.float64)[order], len(planes)
    first = stack[0]
    straight = np.repeat(first[np.newaxis], count, axis=0)
    step = (heights[-1] - heights[0]) / (count - 1)
    straight[:, :3, 3] += np.outer(step * np.arange(count), first[:3, 2])
    # gaps are closed, in heights alone
    stack[:, :3, 3] += np.outer(heights - stack[:, :3, 3] @ normal, normal)
    shifts = [corner_shift(one, other, size).mm for one, other in zip(straight, stack, strict=True)]
    worst = int(np.argmax(shifts))
    if not shifts[worst] <= STACK_TOLERANCE_MM:
        raise ValueError(
            f"{where}: found a corner of the slice {ordered[worst]} {shifts[worst]:.4g} mm from where a straight and even stack "
            f"has it, {_ALLOWED}"
        )
    affine = first.copy()
    span = np.asarray(planes)[order[-1], :3, 3] - first[:3, 3]
    affine[:3, 2] *= np.linalg.norm(span) / (count - 1)
    return SliceStack(tuple(int(k) for k in order), affine)


def slots_of_slices(
    where: str, names: Sequence[str], planes: Sequence[np.ndarray], size: tuple[int, int], *, step: float | None
) -> tuple[int, ...]:
    """Number the slices of an even stack some of which are not stored, such as the empty ones of a segmentation.

    Args:
        where: the file or folder, for messages.
        names: of the slices within it, for messages.
        planes: as for `stack_slices`.
        size: columns and rows of each.
        step: from slice to slice in mm, if that is known. Where it is not, or the slices do not fit it, the smallest step
            between two of them is taken.

    Returns:
        the number of each slice, counted from 0, the first stored slice along the normal.

    Raises:
        ValueError: the slices do not lie at whole multiples of a step, or not in a straight line, within 0.1 mm.

    Example:
        >>> planes = [np.eye(4) for _ in range(3)]
        >>> for plane, height in zip(planes, (5.0, 20.0, 2.5)):
        ...     plane[2, 3] = height
        >>> slots_of_slices("seg", "abc", planes, (4, 4), step=None)
        (1, 7, 0)
    """
    if len(planes) == 1:
        return (0,)
    order, heights, _ = _in_order(where, names, planes, size)
    apart = np.diff(heights)
    smallest = float(apart.min())
    if smallest < _SAME_MM:
        same = int(np.argmin(apart))
        raise ValueError(
            f"{where}: found two slices at one position ({names[order[same]]}, {names[order[same + 1]]}), expected one each"
        )
    off = np.zeros_like(heights)
    for candidate in (step, smallest):
        if not candidate:
            continue
        slots = np.concatenate([[0.0], np.cumsum(np.round(apart / candidate))])
        fitted = (heights[-1] - heights[0]) / max(slots[-1], 1.0)
        off = np.abs(heights - heights[0] - slots * fitted)
        if max(off.max(), abs(fitted - candidate)) <= STACK_TOLERANCE_MM and (np.diff(slots) > 0).all():
            numbers = np.empty(len(planes), dtype=np.int64)
            numbers[order] = slots
            return tuple(numbers.tolist())
    worst = int(np.argmax(off))
    raise ValueError(
        f"{where}: found the slice {names[order[worst]]} {off[worst]:.4g} mm from where slices every {fitted:.4g} mm have it, "
        f"{_ALLOWED}"
    )


def _in_order(
    where: str, names: Sequence[str], planes: Sequence[np.ndarray], size: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which slice comes first, second and so on, their places along the normal in this order, and the normal."""
    stack = np.asarray(planes, dtype=np.float64)
    normal = _parallel(where, names, stack, size)
    heights = stack[:, :3, 3] @ normal
    order = np.argsort(heights, kind="stable")
    beside = stack[order, :3, 3] - np.outer(heights[order], normal)
    _straight(where, [names[k] for k in order], beside, heights[order])
    return order, heights[order], normal


def _parallel(where: str, names: Sequence[str], stack: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Refuse a slice that is turned or whose pixels differ from most others'; return the normal of most of them."""
    edges = stack[:, :3, :2].reshape(len(stack), -1)
    usual = stack[_most_usual(edges)]
    in_place = np.repeat(usual[np.newaxis], len(stack), axis=0)
    in_place[:, :3, 3] = stack[:, :3, 3]
    shifts = [corner_shift(one, other, size).mm for one, other in zip(in_place, stack, strict=True)]
    worst = int(np.argmax(shifts))
    if shifts[worst] <= STACK_TOLERANCE_MM:
        return np.array(usual[:3, 2])
    odd = stack[worst]
    (*pixel, _), (*usual_pixel, _) = voxel_spacing(odd), voxel_spacing(usual)
    respaced = odd.copy()
    respaced[:3, :2] *= np.divide(usual_pixel, pixel)
    moved = f"which moves a corner by {shifts[worst]:.4g} mm, {_ALLOWED}"
    if corner_shift(respaced, odd, size).mm > corner_shift(in_place[worst], respaced, size).mm:
        found, expected = (" x ".join(f"{edge:.6g}" for edge in edges) for edges in (pixel, usual_pixel))
        raise ValueError(
            f"{where}: found pixels of {found} mm in the slice {names[worst]} and of {expected} mm in most others, {moved}"
        )
    raise ValueError(
        f"{where}: found the slice {names[worst]} turned by {_turn_in_degrees(usual, odd):.4g} degrees against most others, "
        f"{moved}"
    )


def _turn_in_degrees(plane: np.ndarray, other: np.ndarray) -> float:
    first, second = (matrix[:3, :3] / np.linalg.norm(matrix[:3, :3], axis=0) for matrix in (plane, other))
    # the Frobenius norm of a rotation minus the identity is 2 sqrt(2) sin(angle / 2); small angles keep their digits
    return float(np.degrees(2 * np.arcsin(min(1.0, np.linalg.norm(first - second) / np.sqrt(8)))))


def _most_usual(values: np.ndarray) -> int:
    """The row nearest to the median of each column: the median itself may be a mixture that is none of the rows."""
    return int(np.argmin(np.abs(values - np.median(values, axis=0)).sum(axis=1)))


def _straight(where: str, names: Sequence[str], beside: np.ndarray, heights: np.ndarray) -> None:
    """Refuse slices that do not lie one behind the other. Their places across the normal are (n, 3)."""
    leaning = beside - beside[0]
    climb = heights - heights[0]
    furthest = float(np.linalg.norm(leaning, axis=1).max())
    if len(names) > 2 and furthest > STACK_TOLERANCE_MM and climb[-1] > _SAME_MM:
        slope = climb @ leaning / (climb @ climb)
        if np.linalg.norm(leaning - np.outer(climb, slope), axis=1).max() <= STACK_TOLERANCE_MM:
            raise ValueError(
                f"{where}: found slices that lie askew by {np.degrees(np.arctan(np.linalg.norm(slope))):.4g} degrees, as of a "
                f"tilted gantry, which moves the slice {names[-1]} by {furthest:.4g} mm, {_ALLOWED}: {_STRAIGHTEN}"
            )
    off = np.linalg.norm(beside - beside[_most_usual(beside)], axis=1)
    worst = int(np.argmax(off))
    if off[worst] > STACK_TOLERANCE_MM:
        raise ValueError(
            f"{where}: found the slice {names[worst]} {off[worst]:.4g} mm beside the others, {_ALLOWED}: the slices do not "
            "form a straight stack"
        )


def _even(where: str, names: Sequence[str], heights: np.ndarray, gaps: bool) -> np.ndarray:
    """Refuse uneven steps; return the heights, with gaps closed if gaps are accepted."""
    steps = np.diff(heights)
    if (steps < _SAME_MM).any():
        same = int(np.flatnonzero(steps < _SAME_MM)[0])
        raise ValueError(
            f"{where}: found two slices at one position ({names[same]}, {names[same + 1]}), expected one each"
            f"{_repeats(heights)}"
        )
    usual = float(np.median(steps))
    wide = steps > _GAP * usual
    if wide.any() and not gaps:
        at = int(np.argmax(steps))
        raise MissingSlice(
            f"{where}: found a gap of {steps[at]:g} mm between {names[at]} and {names[at + 1]}, expected slices every "
            f"{usual:g} mm: a slice is missing"
        )
    closed = heights[0] + np.concatenate([[0.0], np.cumsum(np.where(wide, usual, steps))])
    off = np.abs(closed - np.linspace(closed[0], closed[-1], len(closed)))
    worst = int(np.argmax(off))
    if off[worst] > STACK_TOLERANCE_MM:
        # rounded, so that of steps that differ only by rounding the first is named
        kept = np.where(wide, usual, steps).round(6)
        shortest, longest = int(np.argmin(kept)), int(np.argmax(kept))
        raise ValueError(
            f"{where}: found steps from {steps[shortest]:.4g} mm ({names[shortest]} to {names[shortest + 1]}) to "
            f"{steps[longest]:.4g} mm ({names[longest]} to {names[longest + 1]}), which moves the slice {names[worst]} by "
            f"{off[worst]:.4g} mm from where an even stack has it, {_ALLOWED}"
        )
    return closed


def _repeats(heights: np.ndarray) -> str:
    """What slices that share positions may be, where all positions are shared equally often."""
    starts = np.flatnonzero(np.diff(heights, prepend=-np.inf) >= _SAME_MM)
    times = np.diff(starts, append=len(heights))
    if times.min() != times.max():
        return ""
    return f". Each of {len(times)} positions occurs {times[0]} times: time points, echoes or copies, each a scan of its own"
