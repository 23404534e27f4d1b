"""Grids on which labels lie: against their images, and against each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from ..counting.case_record import CaseRecord
from ..findings import Finding
from ..formats import PICTURE_SUFFIXES, describe_label
from ..geometry import axis_codes, axis_order, corner_shift, without_trailing_ones
from .scan import LabelScan

#: Voxel volumes that differ by more than this factor from the median are reported.
_VOLUME_FACTOR = 4.0
#: Distances of neighbouring voxels that differ by more than this factor within a set are reported.
_SPACING_FACTOR = 2.0
#: Where at least this share of the cases has one size, the others are reported.
_USUAL_SIZE = 0.9
_AXES = ("left to right", "back to front", "foot to head")


def grid_problems(scan: LabelScan, tolerance: float | None) -> Iterable[Finding]:
    """What is unusual about the grids of a scan's labels; see `monai_margincal.statistics.find_problems`.

    Args:
        scan: the raw labels.
        tolerance: how far the corners of an image's grid and its label's may lie apart, in voxels; None compares shapes only.

    Example:
        >>> from monai_margincal.statistics.scan import scan_labels
        >>> scan = scan_labels([{"label": np.eye(4)[None]}, {"label": np.ones((1, 4, 4, 4))}], num_classes=2)
        >>> for finding in grid_problems(scan, None):
        ...     print(finding)
        warning: item_00001: differing grids: volumes (1) and planes (1) in one set: a network takes one or the other
    """
    yield from _image_against_label(scan, tolerance)
    yield from _unusual_sizes(scan)
    yield from _mixed_orientations(scan)
    yield from _planes_among_volumes(scan)
    yield from _differing_spacing(scan)
    yield from _differing_size(scan)


def in_patient_order(record: CaseRecord, per_axis: Sequence[float]) -> tuple[float, ...]:
    """Three numbers, one per stored axis, in the order right, anterior, superior, as a chain sees them after Orientationd.

    Args:
        record: the case; where nobody knows how its axes run, they stay as they are.
        per_axis: one number per stored axis; axes that it lacks get 1.
    """
    numbers = (*per_axis, 1, 1, 1)[:3]
    if record.affine is None or record.voxel_volume is None:
        return numbers
    return tuple(numbers[axis] for axis in axis_order(record.affine))


def place_of(record: CaseRecord) -> str:
    """How a finding names a case: its file, or its name where it has none."""
    return record.file or record.name


def _image_against_label(scan: LabelScan, tolerance: float | None) -> Iterable[Finding]:
    for record in scan.cases:
        image = scan.images.get(record.file or "")
        if image is None or record.file is None:
            continue
        try:
            image_shape, image_affine = _grid(Path(image))
        except (ValueError, OSError) as error:
            yield Finding("error", "unreadable image", str(error), (image, record.file))
            continue
        shape, own = without_trailing_ones(image_shape), without_trailing_ones(record.shape or ())
        if shape != own:
            message = f"the image has the shape {shape}, its label {own}: expected one grid"
            yield Finding("error", "geometry mismatch", message, (image, record.file))
        elif tolerance is not None and image_affine is not None and record.affine is not None:
            shift = corner_shift(image_affine, record.affine, own).voxels
            if not shift <= tolerance:
                message = (
                    f"image and label lie on different grids: the same voxel is up to {shift:.3g} voxels apart, expected at most "
                    f"{tolerance:g}"
                )
                yield Finding("error", "geometry mismatch", message, (image, record.file))


def _grid(image: Path) -> tuple[tuple[int, ...], np.ndarray | None]:
    """Shape and affine of an image; unlike a label, it may be in colour."""
    if image.suffix.lower() in PICTURE_SUFFIXES:
        from PIL import Image

        with Image.open(image) as picture:
            return picture.size, None
    described = describe_label(image)
    return described.shape, described.affine


def _unusual_sizes(scan: LabelScan) -> Iterable[Finding]:
    volumes = {record.name: record.voxel_volume for record in scan.cases if record.voxel_volume}
    if len(volumes) < 4:
        return
    median = float(np.median(list(volumes.values())))
    for record in scan.cases:
        volume = volumes.get(record.name)
        if volume and not median / _VOLUME_FACTOR <= volume <= median * _VOLUME_FACTOR:
            message = f"a voxel is {volume:.4g} mm^3, the median of the cases is {median:.4g} mm^3: its voxels weigh differently"
            yield Finding("info", "unusual voxel size", message, (place_of(record),))


def _mixed_orientations(scan: LabelScan) -> Iterable[Finding]:
    by_codes: dict[str, list[CaseRecord]] = defaultdict(list)
    for record in scan.cases:
        if record.affine is not None and record.voxel_volume is not None:
            by_codes[axis_codes(record.affine)].append(record)
    if len(by_codes) < 2:
        return
    counted = ", ".join(f"{codes} in {len(records)}" for codes, records in sorted(by_codes.items()))
    usual = max(by_codes, key=lambda codes: len(by_codes[codes]))
    others = [place_of(record) for codes, records in by_codes.items() if codes != usual for record in records]
    message = (
        f"the axes of the cases run in different directions ({counted}): without Orientationd a network sees the patients turned "
        "or mirrored, and sizes per axis mean nothing"
    )
    yield Finding("info", "mixed orientations", message, tuple(sorted(others)))


def _planes_among_volumes(scan: LabelScan) -> Iterable[Finding]:
    known = [record for record in scan.cases if record.shape is not None]
    planes = [record for record in known if len(record.shape or ()) == 2]
    # one slice alone may be either
    volumes = [record for record in known if len(without_trailing_ones(record.shape or ())) > 2]
    if planes and volumes:
        message = f"volumes ({len(volumes)}) and planes ({len(planes)}) in one set: a network takes one or the other"
        fewer = volumes if len(volumes) <= len(planes) else planes
        yield Finding("warning", "differing grids", message, tuple(place_of(record) for record in fewer))


def _differing_spacing(scan: LabelScan) -> Iterable[Finding]:
    known = [record for record in scan.cases if record.spacing is not None and record.voxel_volume is not None]
    if len(known) < 2:
        return
    spacings = np.array([in_patient_order(record, record.spacing or ()) for record in known], dtype=np.float64)
    least, most, median = spacings.min(0), spacings.max(0), np.median(spacings, axis=0)
    differing = np.flatnonzero(most > _SPACING_FACTOR * least)
    if not len(differing):
        return
    # if the largest is more than this factor above the smallest, one of them is off the median by its root
    factor = np.maximum(spacings / median, median / spacings)[:, differing].max(1)
    far = [record for record, off in zip(known, factor, strict=True) if off > _SPACING_FACTOR**0.5]
    ranges = ", ".join(f"{least[axis]:.3g} to {most[axis]:.3g} mm from {_AXES[axis]}" for axis in differing)
    message = (
        f"neighbouring voxels lie {ranges} apart: without Spacingd the same structure has other sizes in voxels, and its voxels "
        f"other weights; far from the median: {len(far)} of {len(known)} cases"
    )
    yield Finding("info", "differing grids", message, tuple(place_of(record) for record in far))


def _differing_size(scan: LabelScan) -> Iterable[Finding]:
    known = [record for record in scan.cases if record.shape is not None]
    sizes = Counter(in_patient_order(record, record.shape or ()) for record in known)
    if len(sizes) < 2:
        return
    usual, times = sizes.most_common(1)[0]
    if times >= _USUAL_SIZE * len(known):
        others = [record for record in known if in_patient_order(record, record.shape or ()) != usual]
        message = (
            f"{times} of {len(known)} cases have {'×'.join(map(str, usual))} voxels; of another size: {len(others)}"
        )
        yield Finding("info", "differing grids", message, tuple(place_of(record) for record in others))
