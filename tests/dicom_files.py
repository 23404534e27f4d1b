"""Small CT series as DICOM files, for tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pydicom
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.sequence import Sequence


def write_series(
    folder: Path,
    planes: np.ndarray,
    name: Callable[[int], str] = "IM{}".format,
    first_mm: float = 30.0,
    step_mm: float = 2.5,
    change: Callable[[pydicom.Dataset, int], None] | None = None,
    **attributes: object,
) -> Path:
    """Write planes (rows, columns, n) in Hounsfield units as one series; files have no ending and run against the planes.

    ``change`` may alter the header of plane k before it is written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    study, series, frame = (pydicom.uid.generate_uid() for _ in range(3))
    for k in range(planes.shape[2]):
        image = pydicom.Dataset()
        image.SOPClassUID, image.SOPInstanceUID = pydicom.uid.CTImageStorage, pydicom.uid.generate_uid()
        image.StudyInstanceUID, image.SeriesInstanceUID, image.FrameOfReferenceUID = study, series, frame
        image.Modality, image.PatientID, image.PatientName = "CT", "P1", "Doe^Jane"
        image.SeriesNumber, image.InstanceNumber = 3, planes.shape[2] - k
        image.ImagePositionPatient = [-10.0, 20.0, first_mm + step_mm * k]
        image.ImageOrientationPatient = [1.0, 0, 0, 0, 1, 0]
        image.PixelSpacing, image.SliceThickness = [0.7, 0.9], step_mm
        image.Rows, image.Columns, image.SamplesPerPixel = *planes.shape[:2], 1
        image.PhotometricInterpretation, image.PixelRepresentation = "MONOCHROME2", 1
        image.BitsAllocated, image.BitsStored, image.HighBit = 16, 16, 15
        image.RescaleSlope, image.RescaleIntercept = 1, -1024
        image.PixelData = np.ascontiguousarray(planes[..., k] + 1024).astype("<i2").tobytes()
        for attribute, value in attributes.items():
            setattr(image, attribute, value)
        if change is not None:
            change(image, k)
        image.file_meta = FileMetaDataset()
        image.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
        image.save_as(folder / name(planes.shape[2] - 1 - k), enforce_file_format=True)
    return folder


def decimals(values: object, digits: int = 6) -> list[float]:
    """Numbers as a header holds them, in at most 16 characters."""
    return [float(f"{value:.{digits}f}") for value in np.asarray(values, dtype=float).ravel()]


def nested(**attributes: object) -> Sequence:
    """A sequence of one item."""
    item = Dataset()
    for attribute, value in attributes.items():
        setattr(item, attribute, value)
    return Sequence([item])


def _whole_file(path: Path, dataset: Dataset) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    dataset.SOPInstanceUID = pydicom.uid.generate_uid()
    dataset.StudyInstanceUID, dataset.SeriesInstanceUID = pydicom.uid.generate_uid(), pydicom.uid.generate_uid()
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    dataset.save_as(path, enforce_file_format=True)
    return path


def _shared_groups(step_mm: float | None, spacing: object = (0.7, 0.9)) -> Dataset:
    shared = Dataset()
    shared.PixelMeasuresSequence = nested(PixelSpacing=list(spacing))
    if step_mm is not None:
        shared.PixelMeasuresSequence[0].SpacingBetweenSlices = step_mm
    shared.PlaneOrientationSequence = nested(ImageOrientationPatient=[1.0, 0, 0, 0, 1, 0])
    return shared


def write_multiframe(
    path: Path, planes: np.ndarray, positions: list[list[float]], change: Callable[[Dataset], None] | None = None
) -> Path:
    """Write planes (rows, columns, n) of whole numbers as one enhanced CT file with a position per frame."""
    image = Dataset()
    image.SOPClassUID = pydicom.uid.EnhancedCTImageStorage
    image.Modality, image.NumberOfFrames = "CT", planes.shape[2]
    image.Rows, image.Columns, image.SamplesPerPixel = *planes.shape[:2], 1
    image.PhotometricInterpretation, image.PixelRepresentation = "MONOCHROME2", 1
    image.BitsAllocated, image.BitsStored, image.HighBit = 16, 16, 15
    shared = _shared_groups(None)
    shared.PixelValueTransformationSequence = nested(RescaleSlope=1, RescaleIntercept=-1024)
    shared.PixelMeasuresSequence[0].SliceThickness = 2.5
    image.SharedFunctionalGroupsSequence = Sequence([shared])
    image.PerFrameFunctionalGroupsSequence = Sequence()
    for position in positions:
        group = Dataset()
        group.PlanePositionSequence = nested(ImagePositionPatient=position)
        image.PerFrameFunctionalGroupsSequence.append(group)
    image.PixelData = np.ascontiguousarray(planes.transpose(2, 0, 1) + 1024).astype("<i2").tobytes()
    if change is not None:
        change(image)
    return _whole_file(path, image)


def write_segmentation(
    path: Path,
    frames: np.ndarray,
    positions: list[list[float]],
    step_mm: float | None = 2.5,
    references: int = 0,
    padding: int | None = None,
    change: Callable[[Dataset], None] | None = None,
) -> Path:
    """Write frames (n, rows, columns) as a segmentation: of one segment if they are bool, else as a label map."""
    binary = frames.dtype == bool
    image = Dataset()
    image.SOPClassUID = (
        "1.2.840.10008.5.1.4.1.1.66.4" if binary else "1.2.840.10008.5.1.4.1.1.66.7"  # storage of SEG, of label map SEG
    )
    image.SegmentationType = "BINARY" if binary else "LABELMAP"
    image.Modality, image.NumberOfFrames = "SEG", len(frames)
    image.Rows, image.Columns, image.SamplesPerPixel = *frames.shape[1:], 1
    image.PhotometricInterpretation, image.PixelRepresentation = "MONOCHROME2", 0
    image.BitsAllocated, image.BitsStored, image.HighBit = (1, 1, 0) if binary else (8, 8, 7)
    image.SegmentSequence = nested(SegmentNumber=1)
    image.SharedFunctionalGroupsSequence = Sequence([_shared_groups(step_mm)])
    image.PerFrameFunctionalGroupsSequence = Sequence()
    for position in positions:
        group = Dataset()
        group.PlanePositionSequence = nested(ImagePositionPatient=position)
        group.SegmentIdentificationSequence = nested(ReferencedSegmentNumber=1)
        image.PerFrameFunctionalGroupsSequence.append(group)
    if references:
        image.ReferencedSeriesSequence = nested(SeriesInstanceUID="1.2.3")
        items = [nested(ReferencedSOPInstanceUID=f"1.2.3.{number}")[0] for number in range(references)]
        image.ReferencedSeriesSequence[0].ReferencedInstanceSequence = Sequence(items)
    if padding is not None:
        image.PixelPaddingValue = padding
    bits = np.packbits(frames.ravel(), bitorder="little") if binary else frames.astype(np.uint8)
    image.PixelData = bits.tobytes() + b"\0" * (bits.size % 2)
    if change is not None:
        change(image)
    return _whole_file(path, image)
