"""Small CT series as DICOM files, for tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pydicom
from pydicom.dataset import FileMetaDataset


def write_series(
    folder: Path,
    planes: np.ndarray,
    name: Callable[[int], str] = "IM{}".format,
    first_mm: float = 30.0,
    step_mm: float = 2.5,
    **attributes: object,
) -> Path:
    """Write planes (rows, columns, n) in Hounsfield units as one series; files have no ending and run against the planes."""
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
        image.file_meta = FileMetaDataset()
        image.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
        image.save_as(folder / name(planes.shape[2] - 1 - k), enforce_file_format=True)
    return folder
