"""DICOM segmentation objects (SEG): one bit plane per segment and slice, or a label map."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..extras import require
from .label_image import LabelImage

_SEGMENTATION = "1.2.840.10008.5.1.4.1.1.66.4"
_LABEL_MAP_SEGMENTATION = "1.2.840.10008.5.1.4.1.1.66.7"


def is_segmentation(header: Any) -> bool:
    """Whether a DICOM data set is a segmentation, also by what only one has: as a series its frames would be slices."""
    return str(header.get("SOPClassUID", "")) in (_SEGMENTATION, _LABEL_MAP_SEGMENTATION) or "SegmentSequence" in header


def describe_segmentation(path: Path, file: Path, header: Any) -> LabelImage:
    """Read the header of a segmentation. Its label values are the segment numbers; 0 is what belongs to no segment.

    Frames without any voxel of a segment may be left out of the file. Its grid is therefore as deep as the slices of the
    source series it refers to, or as the slices it stores if those are more.

    Raises:
        ValueError: a fractional segmentation, whose voxels are probabilities; frames that do not match their description.
            On loading: segments that overlap, because one label per voxel cannot say so; the message gives the exact voxels
            of every segment.
    """
    kind = str(header.get("SegmentationType", ""))
    if kind not in ("BINARY", "LABELMAP"):
        raise ValueError(
            f"{path}: found a segmentation of type {kind or 'unknown'}, whose voxels are not labels, expected BINARY or LABELMAP"
        )
    frames = int(header.get("NumberOfFrames") or 1)
    described = len(header.get("PerFrameFunctionalGroupsSequence", []))
    if described != frames:
        raise ValueError(f"{path}: found {frames} frame(s), but {described} descriptions of frames, expected one each")
    places = [_position(group) for group in header.get("PerFrameFunctionalGroupsSequence", [])]
    stored = len(set(places)) if None not in places else frames
    referenced = sum(
        len(series.get("ReferencedInstanceSequence", [])) for series in header.get("ReferencedSeriesSequence", [])
    )
    depth = max(stored, referenced)
    shape = (int(header.Columns), int(header.Rows), depth)
    load = _load_binary if kind == "BINARY" else _load_label_map
    return LabelImage(
        path,
        format=f"DICOM SEG {kind.lower()} ({stored} of {depth} slices stored)",
        shape=shape,
        dtype=f"{int(header.BitsAllocated)} bits",
        affine=None,
        body=None,
        reader="pydicom",
        load=lambda: load(path, file, depth),
    )


def _position(group: Any) -> tuple[float, ...] | None:
    sequence = group.get("PlanePositionSequence")
    if not sequence or "ImagePositionPatient" not in sequence[0]:
        return None
    return tuple(round(float(value), 3) for value in sequence[0].ImagePositionPatient)


def _frames(file: Path) -> tuple[Any, np.ndarray]:
    pydicom = require("pydicom", extra="dicom", purpose=f"reading {file}")
    dataset = pydicom.dcmread(file)
    pixels = dataset.pixel_array
    return dataset, pixels.reshape(-1, *pixels.shape[-2:])


def _load_binary(path: Path, file: Path, depth: int) -> np.ndarray:
    dataset, frames = _frames(file)
    declared = {int(segment.SegmentNumber) for segment in dataset.SegmentSequence}
    slices: dict[Any, np.ndarray] = {}
    voxels: dict[int, int] = dict.fromkeys(sorted(declared), 0)
    overlaps = 0
    for number, (group, frame) in enumerate(zip(dataset.PerFrameFunctionalGroupsSequence, frames, strict=True)):
        segment = _segment_of(dataset, group)
        if segment not in declared:
            raise ValueError(
                f"{path}: found frame {number + 1} of segment {segment}, expected one of {sorted(declared)}"
            )
        place = _position(group)
        if place is None:
            raise ValueError(f"{path}: found no position for frame {number + 1}, expected one per frame")
        label = slices.setdefault(place, np.zeros(frame.shape, np.int32))
        inside = frame != 0
        voxels[segment] += int(inside.sum())
        overlaps += int((inside & (label != 0)).sum())
        label[inside] = segment
    if overlaps:
        exact = ", ".join(f"{segment}: {count}" for segment, count in voxels.items())
        raise ValueError(
            f"{path}: found segments that overlap in {overlaps} voxel(s), expected one label per voxel. "
            f"Voxels per segment, counted each on its own: {{{exact}}}"
        )
    return _with_empty_slices(np.stack(list(slices.values())), depth).transpose()


def _segment_of(dataset: Any, group: Any) -> int:
    sequence = group.get("SegmentIdentificationSequence")
    if not sequence:
        sequence = dataset.SharedFunctionalGroupsSequence[0].SegmentIdentificationSequence
    return int(sequence[0].ReferencedSegmentNumber)


def _load_label_map(path: Path, file: Path, depth: int) -> np.ndarray:
    dataset, frames = _frames(file)
    if len(frames) < depth and int(dataset.get("PixelPaddingValue") or 0) != 0:
        raise ValueError(
            f"{path}: found {len(frames)} of {depth} slices and the padding value {dataset.PixelPaddingValue}, "
            "expected padding 0: what the missing slices hold is not background"
        )
    return _with_empty_slices(frames, depth).transpose()


def _with_empty_slices(stored: np.ndarray, depth: int) -> np.ndarray:
    missing = np.zeros((depth - len(stored), *stored.shape[1:]), stored.dtype)
    return np.concatenate([stored, missing]) if len(missing) else stored
