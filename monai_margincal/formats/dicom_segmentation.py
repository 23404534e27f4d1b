"""DICOM segmentation objects (SEG): one bit plane per segment and slice, or a label map."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..extras import require
from .dicom_slices import NoPlace, frame_attribute, frame_count, slices_of
from .label_image import LabelImage
from .slice_stack import slots_of_slices


def describe_segmentation(path: Path, file: Path, header: Any) -> LabelImage:
    """Read the header of a segmentation. Its label values are the segment numbers; 0 is whatever belongs to no segment.

    Frames without any voxel of a segment may be left out of the file. Its grid is therefore as deep as the slices of the
    source series it refers to, or as the slices it stores if those are more. Where it refers to none, the positions of the frames
    show which slices between the first and the last are left out; nothing can be known about slices beyond these.

    Raises:
        ValueError: frames that do not form one straight stack with an even step, apart from slices that are left out.
        ValueError: a fractional segmentation, whose voxels are probabilities; frames that do not match their description.
            On loading: segments that overlap, because one label per voxel cannot say so; the message gives the exact voxels
            of every segment.

    Warns:
        UserWarning: the file refers to no source images, or the positions of the frames leave out slices that it does not
            mention.
    """
    kind = str(header.get("SegmentationType", ""))
    if kind not in ("BINARY", "LABELMAP"):
        raise ValueError(
            f"{path}: found a segmentation of type {kind or 'unknown'}, whose voxels are not labels, expected BINARY or LABELMAP"
        )
    layout = _layout(path, file, header)
    load = _load_binary if kind == "BINARY" else _load_label_map
    return LabelImage(
        path,
        format=f"DICOM SEG {kind.lower()} ({layout.stored} of {layout.depth} slices stored)",
        shape=(int(header.Columns), int(header.Rows), layout.depth),
        dtype=f"{int(header.BitsAllocated)} bits",
        affine=None,
        body=None,
        reader="pydicom",
        load=lambda: load(path, file, layout),
    )


@dataclass(frozen=True)
class _Layout:
    """Where the frames of a segmentation belong.

    Attributes:
        slots: number of the slice of each frame, from 0.
        stored: how many slices have a frame.
        depth: how many slices there are.
    """

    slots: tuple[int, ...]
    stored: int
    depth: int


def _layout(path: Path, file: Path, header: Any) -> _Layout:
    described, frames = len(header.get("PerFrameFunctionalGroupsSequence") or ()), frame_count(header)
    if described != frames:
        raise ValueError(f"{path}: found {frames} frame(s), but {described} descriptions of frames, expected one each")
    referenced = sum(
        len(series.get("ReferencedInstanceSequence") or ()) for series in header.get("ReferencedSeriesSequence") or ()
    )
    try:
        slices = slices_of(file, header)
    except NoPlace:
        places = [_position(group) for group in header.PerFrameFunctionalGroupsSequence]
        stored = len(set(places)) if None not in places else frames
        if not referenced and "TILED" not in str(header.get("DimensionOrganizationType", "")):
            _warn(
                f"{path}: found neither references to source images nor where every frame lies, expected one of them: only the "
                f"{stored} slices that are stored are counted, background of others cannot be known"
            )
        numbers = {place: number for number, place in enumerate(dict.fromkeys(places))}
        slots = range(frames) if None in places else (numbers[place] for place in places)
        return _Layout(tuple(slots), stored, max(stored, referenced))
    keys = [tuple(np.round(part.plane, 3).ravel().tolist()) for part in slices]
    distinct = dict(zip(keys, slices, strict=True))
    names = [part.name.removeprefix(f"{file.name} ") for part in distinct.values()]
    planes = [part.plane for part in distinct.values()]
    step = frame_attribute(header, 0, "PixelMeasuresSequence", "SpacingBetweenSlices")
    step = None if step is None else abs(float(step))
    size = (int(header.Columns), int(header.Rows))
    numbers = dict(zip(distinct, slots_of_slices(str(path), names, planes, size, step=step), strict=True))
    stored, span = len(distinct), max(numbers.values()) + 1
    if not referenced:
        _warn(
            f"{path}: found no references to source images, expected them: the places of the frames show {span} slices, of which "
            f"{stored} are stored; background of slices before the first and behind the last cannot be known and is not counted"
        )
        return _Layout(tuple(numbers[key] for key in keys), stored, span)
    depth = max(stored, referenced)
    if span > depth:
        _warn(
            f"{path}: found the places of {span} slices, expected at most the {depth} source images that it refers to: whether "
            f"the other {span - depth} are background cannot be known, they are not counted"
        )
        ranks = {number: rank for rank, number in enumerate(sorted(numbers.values()))}
        numbers = {key: ranks[number] for key, number in numbers.items()}
    return _Layout(tuple(numbers[key] for key in keys), stored, depth)


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=5)


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


def _load_binary(path: Path, file: Path, layout: _Layout) -> np.ndarray:
    dataset, frames = _frames(file)
    declared = {int(segment.SegmentNumber) for segment in dataset.SegmentSequence}
    labels = np.zeros((layout.depth, *frames.shape[1:]), np.int32)
    voxels: dict[int, int] = dict.fromkeys(sorted(declared), 0)
    overlaps = 0
    groups = dataset.PerFrameFunctionalGroupsSequence
    for number, (group, frame, slot) in enumerate(zip(groups, frames, layout.slots, strict=True)):
        segment = _segment_of(dataset, group)
        if segment not in declared:
            raise ValueError(
                f"{path}: found frame {number + 1} of segment {segment}, expected one of {sorted(declared)}"
            )
        if _position(group) is None:
            raise ValueError(f"{path}: found no position for frame {number + 1}, expected one per frame")
        inside = frame != 0
        voxels[segment] += int(inside.sum())
        overlaps += int((inside & (labels[slot] != 0)).sum())
        labels[slot][inside] = segment
    if overlaps:
        exact = ", ".join(f"{segment}: {count}" for segment, count in voxels.items())
        raise ValueError(
            f"{path}: found segments that overlap in {overlaps} voxel(s), expected one label per voxel. "
            f"Voxels per segment, counted each on its own: {{{exact}}}"
        )
    return labels.transpose()


def _segment_of(dataset: Any, group: Any) -> int:
    sequence = group.get("SegmentIdentificationSequence")
    if not sequence:
        sequence = dataset.SharedFunctionalGroupsSequence[0].SegmentIdentificationSequence
    return int(sequence[0].ReferencedSegmentNumber)


def _load_label_map(path: Path, file: Path, layout: _Layout) -> np.ndarray:
    dataset, frames = _frames(file)
    if len(frames) > layout.stored:
        raise ValueError(f"{path}: found {len(frames)} frames at {layout.stored} places, expected one each")
    if len(frames) < layout.depth and int(dataset.get("PixelPaddingValue") or 0) != 0:
        raise ValueError(
            f"{path}: found {len(frames)} of {layout.depth} slices and the padding value {dataset.PixelPaddingValue}, "
            "expected padding 0: what the missing slices hold is not background"
        )
    labels = np.zeros((layout.depth, *frames.shape[1:]), frames.dtype)
    labels[list(layout.slots)] = frames
    return labels.transpose()
