"""The mask as a DICOM Segmentation object that refers to the CT series it was made from."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from monai.config import KeysCollection
from monai.data.utils import orientation_ras_lps
from monai.transforms import MapTransform

from ..datasets.case_files import case_file, scan_of
from ..extras import require
from ..files import replacing

if TYPE_CHECKING:
    import pydicom

#: how far a voxel may lie from where its DICOM file puts it, in mm
_TOLERANCE_MM = 0.1


class SaveDicomSegmentationd(MapTransform):
    """Write the class map as a binary DICOM SEG, one segment per class that occurs, frames on the planes of the series.

    Needs highdicom (``pip install "monai-margincal[dicom]"``). The scan must have been read from a folder of single-frame
    DICOM files; where the folder holds several series, the one whose planes are those of the map is taken. The patient's and
    the study's attributes are those of the series. For an empty map nothing is written: DICOM knows no object without a segment.

    Args:
        keys: key of the class map, (1, X, Y, Z), a MetaTensor on the scan's own grid.
        output_dir: folder of all results.
        output_postfix: what is put behind the scan's name.
        data_root_dir: folder of the data set; the scan's subfolder below it is kept.
        class_names: names of the classes by id; the first is the background.
        allow_missing_keys: skip a key that is absent.

    Raises:
        ImportError: highdicom is not installed.
        ValueError: on call: the scan is not a folder of DICOM files, or no series in it lies on the map's grid (an uneven
            distance of planes is such a case: a map on even planes cannot be put there).

    Example:
        >>> try:
        ...     save = SaveDicomSegmentationd("pred", output_dir="eval")
        ... except ImportError:
        ...     pass  # the extra is not installed
    """

    def __init__(
        self,
        keys: KeysCollection,
        output_dir: str | os.PathLike[str],
        output_postfix: str = "seg",
        data_root_dir: str | os.PathLike[str] = "",
        class_names: Sequence[str] = ("background", "lesion"),
        allow_missing_keys: bool = False,
    ) -> None:
        super().__init__(keys, allow_missing_keys)
        require("highdicom", extra="dicom", purpose="writing DICOM SEG")
        self.output_dir = output_dir
        self.output_postfix = output_postfix
        self.data_root_dir = data_root_dir
        self.class_names = list(class_names)

    def __call__(self, data: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        """Write the object of ``data``; pass it through."""
        items = dict(data)
        for key in self.key_iterator(items):
            mask = items[key]
            target = case_file(mask.meta, self.output_dir, self.output_postfix, ".dcm", self.data_root_dir)
            voxels = np.asarray(mask[0].cpu()).astype(np.uint8)
            if not voxels.any():
                continue
            files = series_on_grid(scan_of(mask.meta), voxels.shape, np.asarray(mask.affine.cpu(), dtype=np.float64))
            segmentation = dicom_segmentation(files, voxels, self.class_names)
            with replacing(target) as beside:
                segmentation.save_as(beside)
        return items


def series_on_grid(folder: str, shape: Sequence[int], affine: np.ndarray) -> list[pydicom.Dataset]:
    """Read the headers of the DICOM series whose planes are those of a volume, in the volume's order.

    Args:
        folder: folder of DICOM files.
        shape: the volume's, (X, Y, Z): columns, rows, planes.
        affine: the volume's voxel indices to mm, RAS, (4, 4).

    Returns:
        one data set per plane.

    Raises:
        ValueError: ``folder`` is no folder, holds no DICOM files, or none of its series lies on the grid.
    """
    if not Path(folder).is_dir():
        raise ValueError(f"{folder}: a DICOM SEG refers to a DICOM series, found no folder of DICOM files")
    require("pydicom", extra="dicom", purpose="writing DICOM SEG")
    import pydicom

    series: dict[str, list[pydicom.Dataset]] = {}
    for path in sorted(Path(folder).iterdir()):
        if path.is_file() and not path.name.startswith("."):
            try:
                header = pydicom.dcmread(path, stop_before_pixels=True)
            except pydicom.errors.InvalidDicomError:
                continue
            if not header.get("SpecificCharacterSet"):
                header.pop(
                    "SpecificCharacterSet", None
                )  # empty means the default, which highdicom knows as absent only
            if "ImagePositionPatient" in header:
                series.setdefault(str(header.SeriesInstanceUID), []).append(header)
    if not series:
        raise ValueError(f"{folder}: a DICOM SEG refers to a DICOM series, found no DICOM images in the folder")
    grid = orientation_ras_lps(affine)
    for headers in series.values():
        along = grid[:3, 2]
        headers.sort(key=lambda header: float(np.dot(along, header.ImagePositionPatient)))
        if _on_grid(headers, shape, grid):
            return headers
    raise ValueError(
        f"{folder}: none of its {len(series)} DICOM series has the {shape[2]} planes of {shape[1]} rows and {shape[0]} columns "
        f"of the mask within {_TOLERANCE_MM} mm (are its planes unevenly spaced?)"
    )


def _on_grid(headers: Sequence[pydicom.Dataset], shape: Sequence[int], grid: np.ndarray) -> bool:
    """Whether every plane's first pixel, and its pixel in the far corner, lie where the grid puts them."""
    columns, rows, planes = shape
    if len(headers) != planes:
        return False
    for k, header in enumerate(headers):
        if (header.Columns, header.Rows) != (columns, rows):
            return False
        along_row, along_column = np.reshape(np.asarray(header.ImageOrientationPatient, dtype=np.float64), (2, 3))
        down, right = (float(mm) for mm in header.PixelSpacing)
        first = np.asarray(header.ImagePositionPatient, dtype=np.float64)
        far = first + along_row * right * (columns - 1) + along_column * down * (rows - 1)
        for index, position in (((0, 0, k), first), ((columns - 1, rows - 1, k), far)):
            if np.linalg.norm((grid @ (*index, 1))[:3] - position) > _TOLERANCE_MM:
                return False
    return True


def dicom_segmentation(series: Sequence[pydicom.Dataset], voxels: np.ndarray, class_names: Sequence[str]) -> Any:
    """Make the DICOM SEG of a class map.

    Args:
        series: headers of the images, one per plane, in the order of the planes.
        voxels: class ids, (X, Y, Z): columns, rows, planes; at least one is not 0.
        class_names: names of the classes by id.

    Returns:
        `highdicom.seg.Segmentation`.
    """
    import highdicom
    from pydicom.sr.codedict import codes

    from .. import __version__

    algorithm = highdicom.AlgorithmIdentificationSequence(
        name="COPLE-Net", version=__version__, family=codes.DCM.ArtificialIntelligence
    )
    present = [k for k in range(1, len(class_names)) if (voxels == k).any()]
    segments = [
        highdicom.seg.SegmentDescription(
            segment_number=number,
            segment_label=class_names[k],
            segmented_property_category=codes.SCT.MorphologicallyAbnormalStructure,
            segmented_property_type=codes.SCT.Lesion,
            algorithm_type=highdicom.seg.SegmentAlgorithmTypeValues.AUTOMATIC,
            algorithm_identification=algorithm,
        )
        for number, k in enumerate(present, 1)
    ]
    planes = voxels.transpose(2, 1, 0)  # planes, rows, columns
    masks = np.stack([planes == k for k in present], axis=-1).astype(np.uint8)
    return highdicom.seg.Segmentation(
        source_images=list(series),
        pixel_array=masks,
        segmentation_type=highdicom.seg.SegmentationTypeValues.BINARY,
        segment_descriptions=segments,
        series_instance_uid=highdicom.UID(),
        series_number=int(series[0].get("SeriesNumber") or 0) + 1000,
        sop_instance_uid=highdicom.UID(),
        instance_number=1,
        manufacturer="monai-margincal",
        manufacturer_model_name="COPLE-Net",
        software_versions=__version__,
        device_serial_number="0",
        content_label="LESION",
    )
