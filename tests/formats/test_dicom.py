"""DICOM label series: a folder is one label, rescaled as its headers say, or refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk
from label_files import LABEL, unique

from monai_margincal.counting.label_file import count_file


def _series(folder: Path, array: np.ndarray, **changes: object) -> Path:
    """A small DICOM label series, one file per slice, names in no order."""
    import pydicom
    from pydicom.uid import ExplicitVRLittleEndian

    folder.mkdir()
    series = pydicom.uid.generate_uid()
    for z in range(array.shape[2]):
        meta = pydicom.dataset.FileMetaDataset()
        meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.2"
        meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid()
        meta.TransferSyntaxUID = ExplicitVRLittleEndian
        slice_ = pydicom.dataset.FileDataset(None, {}, file_meta=meta, preamble=b"\0" * 128)
        slice_.SOPClassUID, slice_.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
        slice_.SeriesInstanceUID, slice_.Modality = series, "CT"
        slice_.ImageOrientationPatient, slice_.ImagePositionPatient = [1, 0, 0, 0, 1, 0], [0, 0, 3.0 * z]
        slice_.PixelSpacing, slice_.Columns, slice_.Rows = [0.5, 0.7], array.shape[0], array.shape[1]
        slice_.BitsAllocated = slice_.BitsStored = 16
        slice_.HighBit, slice_.PixelRepresentation, slice_.SamplesPerPixel = 15, 0, 1
        slice_.PhotometricInterpretation = "MONOCHROME2"
        slice_.PixelData = np.ascontiguousarray(array[:, :, z].transpose().astype("<u2")).tobytes()
        for name, value in changes.items():
            setattr(slice_, name, value)
        slice_.save_as(folder / f"{(z * 7) % 10}{z}", enforce_file_format=True)
    return folder


def test_dicom_series_is_a_folder(tmp_path: Path) -> None:
    count = count_file(_series(tmp_path / "series", LABEL))
    assert count.values == unique(LABEL)
    assert count.shape == LABEL.shape
    assert count.spacing == pytest.approx((0.7, 0.5, 3.0))
    reader = sitk.ImageSeriesReader()
    reader.SetFileNames(reader.GetGDCMSeriesFileNames(str(tmp_path / "series")))
    assert count.values == unique(sitk.GetArrayFromImage(reader.Execute()))


def test_dicom_rescale_is_applied(tmp_path: Path) -> None:
    folder = _series(tmp_path / "scaled", LABEL, RescaleSlope=2, RescaleIntercept=1)
    assert count_file(folder).values == {2 * k + 1: n for k, n in unique(LABEL).items()}
    folder = _series(tmp_path / "halved", LABEL, RescaleSlope=0.5, RescaleIntercept=0)
    with pytest.raises(ValueError, match=r"halved: found values that are not integers: 0\.5"):
        count_file(folder)


def test_faulty_dicom_folders(tmp_path: Path) -> None:
    folder = _series(tmp_path / "series", LABEL)
    (folder / "notes.txt").write_text("not DICOM, left out")
    assert count_file(folder).values == unique(LABEL)
    (folder / "extra.dcm").write_bytes(b"")
    with pytest.raises(ValueError, match=r"extra\.dcm: found no DICOM header"):
        count_file(folder)
    (folder / "extra.dcm").unlink()
    other = _series(tmp_path / "other", LABEL[:, :, :1])
    (folder / "second").write_bytes(next(other.iterdir()).read_bytes())
    with pytest.raises(ValueError, match="found 2 DICOM series"):
        count_file(folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="found no DICOM file in this folder"):
        count_file(tmp_path / "empty")
