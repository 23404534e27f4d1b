"""The mask as a DICOM Segmentation object that refers to the series it was made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...datasets.case_files import scan_of
from ...extras import require
from ...files import replacing
from ...formats.dicom_slices import slices_of, what_it_is
from ...formats.slice_stack import STACK_TOLERANCE_MM
from ...geometry import LPS_TO_RAS, corner_shift
from ..kind import Destination, ScanFile

if TYPE_CHECKING:
    import pydicom


class DicomSeg(ScanFile):
    """``NAME_seg.dcm``: the class map as a binary DICOM SEG, one segment per class that occurs, on the planes of the series.

    Needs highdicom (``pip install "monai-margincal[dicom]"``). The scan must have been read from a folder of single-frame
    DICOM files; where the folder holds several series, the one whose planes are those of the map is taken. The patient's and
    the study's attributes are those of the series. Nothing is written for an empty map: DICOM has no object without a segment.

    Args:
        destination: where the results go.
        segments: what the classes are called in a coded terminology: class name -> ``{"category": code, "type": code}``, a
            code being its value, its scheme and its meaning, such as ``["10200004", "SCT", "Liver"]``. Every class but the
            background needs one.
        postfix: what is appended to the scan's name, in place of "seg".
        algorithm: name of what found the segments.
        content_label: DICOM's label of the content, at most 16 capitals, digits, blanks and underscores.

    Raises:
        ImportError: highdicom is not installed.
        ValueError: ``segments`` does not describe exactly the classes; on ``save``: the scan is not a folder of DICOM files, or
            no series in it lies on the map's grid (for example where its planes are unevenly spaced: a map on even planes cannot
            be put there).
    """

    kind = "dicom_seg"
    postfix = "seg"
    ending = ".dcm"

    def __init__(
        self,
        destination: Destination,
        segments: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
        postfix: str | None = None,
        algorithm: str = "monai-margincal",
        content_label: str = "SEGMENTATION",
    ) -> None:
        super().__init__(destination, postfix)
        require("highdicom", extra="dicom", purpose="writing DICOM SEG")
        self.segments = dict(segments or {})
        names = destination.class_names[1:]
        if set(self.segments) != set(names):
            raise ValueError(
                f"segments of dicom_seg: found descriptions of {sorted(self.segments)}, expected one of each of {list(names)}: "
                'class name -> {"category": [value, scheme, meaning], "type": [value, scheme, meaning]}'
            )
        self.algorithm = algorithm
        self.content_label = content_label

    def save(self, items: Mapping[Any, Any], key: str) -> None:
        """Write the object."""
        mask = items[key]
        voxels = np.asarray(mask[0].cpu()).astype(np.uint8)
        if not voxels.any():
            return
        series = series_on_grid(scan_of(mask.meta), voxels.shape, np.asarray(mask.affine.cpu(), dtype=np.float64))
        segmentation = self.make(series, voxels)
        with replacing(self.path(mask.meta)) as beside:
            segmentation.save_as(beside)

    def make(self, series: Sequence[pydicom.Dataset], voxels: np.ndarray) -> Any:
        """Make the DICOM SEG of a class map.

        Args:
            series: headers of the images, one per plane, in the order of the planes.
            voxels: class ids, (X, Y, Z): columns, rows, planes; at least one is not 0.

        Returns:
            `highdicom.seg.Segmentation`.
        """
        import highdicom
        from pydicom.sr.codedict import codes

        from ... import __version__

        algorithm = highdicom.AlgorithmIdentificationSequence(
            name=self.algorithm, version=__version__, family=codes.DCM.ArtificialIntelligence
        )
        present = [k for k in range(1, len(self.destination.class_names)) if (voxels == k).any()]
        names = [self.destination.class_names[k] for k in present]
        segments = [
            highdicom.seg.SegmentDescription(
                segment_number=number,
                segment_label=name,
                segmented_property_category=highdicom.sr.CodedConcept(*self.segments[name]["category"]),
                segmented_property_type=highdicom.sr.CodedConcept(*self.segments[name]["type"]),
                algorithm_type=highdicom.seg.SegmentAlgorithmTypeValues.AUTOMATIC,
                algorithm_identification=algorithm,
            )
            for number, name in enumerate(names, 1)
        ]
        planes = voxels.transpose(2, 1, 0)  # planes, rows, columns
        return highdicom.seg.Segmentation(
            source_images=list(series),
            pixel_array=np.stack([planes == k for k in present], axis=-1).astype(np.uint8),
            segmentation_type=highdicom.seg.SegmentationTypeValues.BINARY,
            segment_descriptions=segments,
            series_instance_uid=highdicom.UID(),
            series_number=int(series[0].get("SeriesNumber") or 0) + 1000,
            sop_instance_uid=highdicom.UID(),
            instance_number=1,
            manufacturer="monai-margincal",
            manufacturer_model_name=self.algorithm,
            software_versions=__version__,
            device_serial_number="0",
            content_label=self.content_label,
        )


def series_on_grid(folder: str, shape: Sequence[int], affine: np.ndarray) -> list[pydicom.Dataset]:
    """Read the headers of the DICOM series whose planes are those of a volume, in the volume's order.

    Args:
        folder: folder of DICOM files.
        shape: the volume's, (X, Y, Z): columns, rows, planes.
        affine: the volume's voxel indices to mm, RAS, (4, 4).

    Returns:
        one data set per plane.

    Raises:
        ValueError: ``folder`` is not a folder, holds no DICOM files, or none of its series lies on the grid.
    """
    require("pydicom", extra="dicom", purpose="writing DICOM SEG")
    import pydicom

    if not Path(folder).is_dir():
        raise ValueError(f"{folder}: a DICOM SEG refers to a DICOM series, found no folder of DICOM files")
    series: dict[str, list[pydicom.Dataset]] = {}
    for path in sorted(Path(folder).iterdir()):
        if path.is_file() and not path.name.startswith("."):
            try:
                header = pydicom.dcmread(path, stop_before_pixels=True)
            except pydicom.errors.InvalidDicomError:
                continue
            if not header.get("SpecificCharacterSet"):
                # empty means the default, which highdicom takes only where the attribute is absent
                header.pop("SpecificCharacterSet", None)
            if _is_placed_slice(path, header):
                series.setdefault(str(header.SeriesInstanceUID), []).append(header)
    if not series:
        raise ValueError(f"{folder}: a DICOM SEG refers to a DICOM series, found no DICOM images in the folder")
    grid = LPS_TO_RAS @ affine
    closest = np.inf
    for headers in series.values():
        headers.sort(key=lambda header: float(np.dot(grid[:3, 2], header.ImagePositionPatient)))
        apart = _distance_from_grid(headers, shape, grid)
        if apart <= STACK_TOLERANCE_MM:
            return headers
        closest = min(closest, apart)
    nearest = f", the nearest lies {closest:.4g} mm away" if np.isfinite(closest) else ""
    raise ValueError(
        f"{folder}: none of its {len(series)} DICOM series has the {shape[2]} planes of {shape[1]} rows and {shape[0]} columns "
        f"of the mask within {STACK_TOLERANCE_MM:g} mm{nearest} (are its planes unevenly spaced?)"
    )


def _is_placed_slice(path: Path, header: pydicom.Dataset) -> bool:
    """Whether a file is one slice of a scan that says where it lies, and no localizer or report."""
    try:
        return what_it_is(header) is None and len(slices_of(path, header)) == 1
    except ValueError:
        return False


def _distance_from_grid(headers: Sequence[pydicom.Dataset], shape: Sequence[int], grid: np.ndarray) -> float:
    """How far the pixels in the corners of the planes are from where the grid puts them, in mm; infinite for other planes."""
    columns, rows, planes = shape
    if len(headers) != planes or any((header.Columns, header.Rows) != (columns, rows) for header in headers):
        return np.inf
    furthest = 0.0
    for k, header in enumerate(headers):
        (part,) = slices_of(Path(str(header.filename)), header)
        expected = grid.copy()
        expected[:, 3] = grid @ (0, 0, k, 1)
        furthest = max(furthest, corner_shift(part.plane, expected, (columns, rows)).mm)
    return furthest
