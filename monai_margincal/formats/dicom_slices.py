"""Where the slices of DICOM files lie by their headers, one per file or several frames in a file; and what is not a slice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..geometry import plane_affine

_SEGMENTATION = "1.2.840.10008.5.1.4.1.1.66.4"
_LABEL_MAP_SEGMENTATION = "1.2.840.10008.5.1.4.1.1.66.7"

#: How far the directions of rows and columns may be from unit vectors at a right angle: room for three decimals.
_ROUNDING = 2e-3


class NoPlace(ValueError):
    """The header does not say where a slice lies."""


class Slice(NamedTuple):
    """One slice.

    Attributes:
        file: where it is.
        frame: its number in the file, from 0.
        name: the file's name, with the frame's number from 1 if there are several.
        plane: (column, row, mm along the normal) to mm in LPS, (4, 4).
    """

    file: Path
    frame: int
    name: str
    plane: np.ndarray


def frame_count(header: Any) -> int:
    """Number of frames in a file, 1 for a file of one slice."""
    return int(header.get("NumberOfFrames") or 1)


def slices_of(file: Path, header: Any) -> list[Slice]:
    """Find the slices in a file, in the order in which they are stored.

    Raises:
        NoPlace: the header lacks the position, the orientation or the spacing of one.
        ValueError: one of these is invalid, such as a position of NaN, or there are more or fewer frames than descriptions.
    """
    frames = frame_count(header)
    described = len(header.get("PerFrameFunctionalGroupsSequence") or ())
    if described not in (0, frames):
        raise ValueError(f"{file}: found {frames} frame(s), but {described} descriptions of frames, expected one each")
    if frames > 1 and not described:
        raise NoPlace(f"{file}: found {frames} frames and no position of each, expected where every slice lies")
    names = [file.name] if frames == 1 else [f"{file.name} frame {frame + 1}" for frame in range(frames)]
    return [Slice(file, frame, name, _plane(file, name, header, frame)) for frame, name in enumerate(names)]


def frame_attribute(header: Any, frame: int, group: str, keyword: str) -> Any:
    """Look up an attribute of a frame in its own functional group, in the one that all share, and in the header itself."""
    own = header.get("PerFrameFunctionalGroupsSequence") or ()
    for groups in (own[frame : frame + 1], header.get("SharedFunctionalGroupsSequence") or ()):
        for holder in groups:
            if (sequence := holder.get(group)) and sequence[0].get(keyword) is not None:
                return sequence[0].get(keyword)
    return header.get(keyword)


def _plane(file: Path, name: str, header: Any, frame: int) -> np.ndarray:
    place = str(file) if name == file.name else f"{file}, frame {frame + 1}"
    position = _numbers(place, header, frame, group="PlanePositionSequence", keyword="ImagePositionPatient", count=3)
    orientation = _numbers(
        place, header, frame, group="PlaneOrientationSequence", keyword="ImageOrientationPatient", count=6
    )
    spacing = _numbers(place, header, frame, group="PixelMeasuresSequence", keyword="PixelSpacing", count=2)
    rows, columns = orientation.reshape(2, 3)
    off = max(abs(np.linalg.norm(rows) - 1), abs(np.linalg.norm(columns) - 1), abs(rows @ columns))
    if not off <= _ROUNDING:
        raise ValueError(
            f"{place}: found the ImageOrientationPatient {orientation.tolist()}, expected two unit vectors at a right angle"
        )
    if not (spacing > 0).all():
        raise ValueError(f"{place}: found the PixelSpacing {spacing.tolist()}, expected two positive numbers in mm")
    return plane_affine(orientation, position, spacing.tolist())


def _numbers(place: str, header: Any, frame: int, *, group: str, keyword: str, count: int) -> np.ndarray:
    try:
        value = frame_attribute(header, frame, group, keyword)
    except (TypeError, ValueError) as error:  # pydicom converts the text only now
        raise ValueError(f"{place}: found a {keyword} that is not {count} numbers ({error})") from None
    if value is None or value == "":
        raise NoPlace(f"{place}: found no {keyword}, expected it of every slice: where the slice lies cannot be known")
    try:
        numbers = np.array(value, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.size != count or not np.isfinite(numbers).all():
        raise ValueError(f"{place}: found the {keyword} {value}, expected {count} finite numbers")
    return numbers


def thickness_of(header: Any) -> float | None:
    """SliceThickness of a single slice in mm; None where it is not given or not positive."""
    try:
        thickness = float(frame_attribute(header, 0, "PixelMeasuresSequence", "SliceThickness"))
    except (TypeError, ValueError):
        return None
    return thickness if 0 < thickness < np.inf else None


def is_segmentation(header: Any) -> bool:
    """Whether a data set is a segmentation, by its class or by what only one has: as a series its frames would be slices."""
    return str(header.get("SOPClassUID", "")) in (_SEGMENTATION, _LABEL_MAP_SEGMENTATION) or "SegmentSequence" in header


def what_it_is(header: Any) -> str | None:
    """What to call a file that is not a slice of a scan: a localizer, a report, a picture in colour; else None."""
    if header.get("Rows") is None:
        name = getattr(header.get("SOPClassUID"), "name", "") or "an object"
        return f"{name} (Modality {header.get('Modality') or 'unknown'}) without pixels"
    if "LOCALIZER" in [str(value).upper() for value in _list(header.get("ImageType"))]:
        return "a localizer"
    if is_segmentation(header):
        return "a DICOM segmentation"
    if header.get("SamplesPerPixel", 1) != 1:
        return f"a picture of {header.SamplesPerPixel} values per pixel"
    return None


def odd_ones(headers: Sequence[tuple[Path, Any]]) -> list[tuple[Path, str]]:
    """Files that are not slices, and what they are, where other files are slices; nothing if none is a slice."""
    named = [(file, what_it_is(header)) for file, header in headers]
    odd = [(file, what) for file, what in named if what is not None]
    return odd if len(odd) < len(named) else []


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)
