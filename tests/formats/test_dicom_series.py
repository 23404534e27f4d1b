"""Folders of DICOM files that a reader would take in silence: two series, copies, gaps, damaged files, one thick slice."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from dicom_files import write_series
from monai.transforms import Compose, EnsureChannelFirstd, LoadImaged, Orientationd

from monai_margincal.datasets import ScanDataset
from monai_margincal.formats.dicom_series import check_dicom_series

PREPARE = Compose(
    [
        LoadImaged("image"),
        EnsureChannelFirstd("image"),
        Orientationd("image", axcodes="PLS", labels=(("L", "R"), ("P", "A"), ("I", "S"))),
    ]
)


def planes(number, seed=0):
    return np.random.RandomState(seed).randint(-1024, 500, (8, 6, number)).astype(np.int16)


def read(folder, **options):
    return ScanDataset([{"image": str(folder)}], PREPARE, **options)[0]["image"]


@pytest.mark.parametrize("name", ["IM{}", "{}.dcm", "1.2.840.{}"])
def test_a_good_series_is_read_without_a_warning(tmp_path, name):
    """Project-MONAI/model-zoo#508, Project-MONAI/MONAI#6943, #1711: DICOM folders as input, with or without endings."""
    volume = planes(5)
    folder = write_series(tmp_path / "scan", volume, name.format)
    (folder / "notes.txt").write_text("not DICOM")
    (folder / "DICOMDIR").write_bytes(b"index")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert check_dicom_series(folder).shape == (6, 8, 5)
        image = read(folder)
    # rows run towards posterior, columns towards left, planes towards the head
    assert np.array_equal(np.asarray(image[0]), volume)


def test_two_series_in_one_folder_are_refused(tmp_path):
    """MONAI takes the one whose UID comes first, which may be the scout view."""
    folder = write_series(tmp_path / "scan", planes(5))
    write_series(folder, planes(1), "scout{}".format, first_mm=300.0)
    with pytest.raises(RuntimeError, match=r"scan: found 2 DICOM series .*one per folder"):
        read(folder)


def test_a_slice_twice_is_refused(tmp_path):
    """Two copies of one export would make a scan of twice the slices, 1 mm thick."""
    folder = write_series(tmp_path / "scan", planes(3))
    for path in list(folder.iterdir()):
        (folder / f"copy_of_{path.name}").write_bytes(path.read_bytes())
    with pytest.raises(RuntimeError, match=r"found two slices at one position \(IM\d, copy_of_IM\d\)"):
        read(folder)


def test_a_missing_slice_is_refused_or_said(tmp_path):
    """The planes that are there can be segmented, but their places are those of an even spacing."""
    folder = write_series(tmp_path / "scan", planes(6))
    (folder / "IM3").unlink()
    with pytest.raises(RuntimeError, match=r"a gap of 5 mm between IM4 and IM2, .* every 2\.5 mm: a slice is missing$"):
        read(folder)
    with pytest.warns(
        UserWarning, match=r"a gap of 5 mm between IM4 and IM2, .* every 2\.5 mm.*evenly spaced"
    ) as warned:
        assert read(folder, allow_gaps=True).shape == (1, 8, 6, 5)
    assert len([w for w in warned if "gap" in str(w.message)]) == 1


def test_a_truncated_slice_is_refused(tmp_path):
    """ITK leaves the file out and spreads the others over its place."""
    folder = write_series(tmp_path / "scan", planes(4))
    (folder / "IM1").write_bytes((folder / "IM1").read_bytes()[:-20])
    with pytest.raises(RuntimeError, match=r"read as \(6, 8, 3\), but the DICOM headers .* \(6, 8, 4\)"):
        read(folder)


@pytest.mark.parametrize("fault", ["empty", "text", "nested", "size"])
def test_other_faults_name_the_folder(tmp_path, fault):
    folder = tmp_path / "scan"
    if fault == "nested":
        write_series(folder / "series", planes(2))
    else:
        write_series(folder, planes(2))
        if fault == "size":
            write_series(folder, planes(2)[:4], "small{}".format, SeriesInstanceUID="1.2.3")
            for path in folder.iterdir():
                _set_series(path, "1.2.3")
        else:
            (folder / "extra.dcm").write_bytes(b"" if fault == "empty" else b"no DICOM" * 40)
    message = {"nested": "found no DICOM file in this folder", "size": "slices of rows x columns"}.get(
        fault, r"extra\.dcm: found no DICOM header"
    )
    with pytest.raises(RuntimeError, match=rf"^{folder}[:/].*{message}"):
        read(folder)


def test_one_slice_is_a_scan_and_its_thickness_is_said(tmp_path):
    """Readers make it 1 mm thick, whatever its header says."""
    volume = planes(1)
    folder = write_series(tmp_path / "thick", volume, step_mm=5.0)
    with pytest.warns(UserWarning, match=r"thick: found one slice of 5 mm.*multiply its volumes in ml by 5"):
        image = read(folder)
    assert np.array_equal(np.asarray(image[0]), volume)
    assert np.linalg.norm(np.asarray(image.affine)[:3, 2]) == pytest.approx(1.0), (
        "readers have learnt it: drop the warning"
    )
    thin = write_series(tmp_path / "thin", volume, step_mm=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        read(thin)


def _set_series(path, uid):
    import pydicom

    header = pydicom.dcmread(path)
    header.SeriesInstanceUID = uid
    header.save_as(path)
