"""DICOM series that are no straight, even stack are refused as scan and as label, before a voxel is read; good ones pass."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pydicom
import pytest
from dicom_files import decimals, write_multiframe, write_series
from label_files import DATA
from monai.transforms import LoadImaged
from shared import needs_shared

from monai_margincal.counting.label_file import count_file
from monai_margincal.datasets import ScanDataset
from monai_margincal.errors import CaseError
from monai_margincal.formats import describe_label

COUNT, STEP = 8, 2.5
VOXELS = np.random.RandomState(0).randint(0, 3, (8, 6, COUNT)).astype(np.int16)
X, Y, Z = (np.eye(3)[axis] for axis in range(3))


def _read(scan: Path, **options: object) -> object:
    """As the bundle does, without its intensities."""
    return ScanDataset([{"image": str(scan)}], LoadImaged("image", ensure_channel_first=True), **options)[0]["image"]


def _refused_as_scan_and_label(path: Path, message: str) -> None:
    def read_nothing(item: object) -> object:
        pytest.fail("read before it was refused")

    with pytest.raises(CaseError, match=rf"^{path}[:/,].*{message}"):
        ScanDataset([{"image": str(path)}], read_nothing)[0]
    with pytest.raises(ValueError, match=rf"^{path}[:/,].*{message}"):
        count_file(path)


def _drop(keyword: str, *slices: int) -> Callable[[pydicom.Dataset, int], None]:
    def change(image: pydicom.Dataset, k: int) -> None:
        if not slices or k in slices:
            delattr(image, keyword)

    return change


def _put(keyword: str, value: object, *slices: int) -> Callable[[pydicom.Dataset, int], None]:
    def change(image: pydicom.Dataset, k: int) -> None:
        if not slices or k in slices:
            setattr(image, keyword, value(k) if callable(value) else value)

    return change


def _at(place: Callable[[int], object]) -> Callable[[pydicom.Dataset, int], None]:
    return _put("ImagePositionPatient", lambda k: decimals(place(k)))


#: what: (how the headers are changed, the message); files are named against the planes: plane k is IM{7 - k}
FAULTS: dict[str, tuple[Callable[[pydicom.Dataset, int], None], str]] = {
    "tilt": (
        _at(lambda k: (-10, 20 + STEP * k * np.tan(np.deg2rad(18.5)), 30 + STEP * k)),
        r"askew by 18\.5 degrees.*moves the slice IM0 by 5\.855 mm, expected at most 0\.1 mm: resample",
    ),
    "shifted": (_at(lambda k: (-10 + 30 * (k > 3), 20, 30 + STEP * k)), r"the slice IM[0-3] 30 mm beside the others"),
    "5 and 7": (
        _at(lambda k: (-10, 20, 5 * k + 2 * max(0, k - 3))),
        r"steps from 5 mm \(IM7 to IM6\) to 7 mm \(IM4 to IM3\), which moves the slice IM4 by 3\.429 mm",
    ),
    "turned": (_put("ImageOrientationPatient", [-1, 0, 0, 0, -1, 0], 4), r"IM3 turned by 180 degrees .* by 13\.31 mm"),
    "mirrored": (_put("ImageOrientationPatient", [-1, 0, 0, 0, 1, 0], 4), r"IM3 turned by .* a corner by 9 mm"),
    "pixels": (
        _put("PixelSpacing", [0.7, 0.7], 4),
        r"pixels of 0\.7 x 0\.7 mm in the slice IM3 and of 0\.9 x 0\.7 mm .* 1 mm",
    ),
    "no spacing": (_drop("PixelSpacing"), r"found no PixelSpacing"),
    "no spacing of one": (_drop("PixelSpacing", 2), r"IM5: found no PixelSpacing"),
    "empty spacing": (_put("PixelSpacing", None, 2), r"IM5: found no PixelSpacing"),
    "spacing 0": (
        _put("PixelSpacing", [0, 0.9], 2),
        r"IM5: found the PixelSpacing \[0\.0, 0\.9\], expected two positive",
    ),
    "no orientation": (_drop("ImageOrientationPatient"), r"found no ImageOrientationPatient"),
    "no orientation of one": (_drop("ImageOrientationPatient", 0), r"IM7: found no ImageOrientationPatient"),
    "no place": (_drop("ImagePositionPatient", 2), r"IM5: found no ImagePositionPatient"),
    "flat orientation": (_put("ImageOrientationPatient", [1, 0, 0, 1, 0, 0]), r"two unit vectors at a right angle"),
    "zero orientation": (_put("ImageOrientationPatient", [0] * 6), r"two unit vectors at a right angle"),
    "two numbers": (
        _put("ImagePositionPatient", [1, 2], 2),
        r"IM5: found the ImagePositionPatient .*expected 3 finite",
    ),
    "copies": (_at(lambda k: (-10, 20, STEP * (k // 2))), r"two slices at one position.*4 positions occurs 2 times"),
    "gap": (_at(lambda k: (-10, 20, STEP * (k + (k > 3)))), r"a gap of 5 mm between IM4 and IM3"),
    "localizer": (
        _put("ImageType", ["ORIGINAL", "PRIMARY", "LOCALIZER"], 7),
        r"IM0: found a localizer, expected slices of one scan alone: move it out",
    ),
    "colours": (_put("SamplesPerPixel", 3, 7), r"IM0: found a picture of 3 values per pixel, expected slices"),
    "report": (_drop("Rows", 7), r"IM0: found CT Image Storage \(Modality CT\) without pixels"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_series_with_a_fault_is_refused_with_file_and_deviation(tmp_path, fault):
    change, message = FAULTS[fault]
    _refused_as_scan_and_label(write_series(tmp_path / "scan", VOXELS, change=change), message)


@pytest.mark.filterwarnings("ignore")  # of pydicom, which doubts it too
@pytest.mark.parametrize("text", ["nan", "inf", "1,5"])
def test_a_position_that_is_no_number_is_refused(tmp_path, text):
    folder = write_series(tmp_path / "scan", VOXELS)
    file = folder / "IM3"
    content = file.read_bytes()
    place = b"-10.0\\20.0\\40.0"
    assert place in content
    file.write_bytes(content.replace(place, text.encode().ljust(5) + place[5:]))
    _refused_as_scan_and_label(folder, r"IM3: .*ImagePositionPatient")


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "gap"])
def test_allow_gaps_excuses_gaps_alone(tmp_path, fault):
    change, message = FAULTS[fault]
    folder = write_series(tmp_path / "scan", VOXELS, change=change)
    with pytest.raises(CaseError, match=message):
        _read(folder, allow_gaps=True)


def _good(rows: np.ndarray, columns: np.ndarray, digits: int = 6, jitter: float = 0.0):
    noise = np.random.RandomState(3).uniform(-jitter, jitter, (COUNT, 3))
    normal = np.cross(rows, columns)

    def change(image: pydicom.Dataset, k: int) -> None:
        image.ImageOrientationPatient = decimals([*rows, *columns])
        image.ImagePositionPatient = decimals((-120.5, 80.25, -33.0) + STEP * k * normal + noise[k], digits)

    return change


_LEAN = np.deg2rad(20)
OBLIQUE = np.cos(_LEAN) * X + np.sin(_LEAN) * Z, Y
GOOD = {
    "axial": _good(X, Y),
    "feet first": _good(-X, Y),
    "coronal": _good(X, -Z),
    "sagittal": _good(Y, -Z),
    "oblique": _good(*OBLIQUE),
    "two decimals": _good(*OBLIQUE, digits=2),
    "three decimals": _good(*OBLIQUE, digits=3),
    "jitter": _good(*OBLIQUE, jitter=0.01),
    "thin slices": lambda image, k: (_good(X, Y)(image, k), setattr(image, "SliceThickness", 1.25)),
    "thick slices": lambda image, k: (_good(X, Y)(image, k), setattr(image, "SliceThickness", 5.0)),
    "all localizers": lambda image, k: (_good(X, Y)(image, k), setattr(image, "ImageType", ["LOCALIZER"])),
}


@pytest.mark.parametrize("kind", GOOD)
def test_a_good_series_lies_where_itk_and_monai_have_it(tmp_path, kind):
    folder = write_series(tmp_path / "scan", VOXELS, change=GOOD[kind])
    scans = ScanDataset([{"image": str(folder)}], LoadImaged("image", ensure_channel_first=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        image = scans[0]["image"]
        label = describe_label(folder)
    assert np.abs(np.asarray(image.affine) - label.affine).max() < 1e-6
    assert np.array_equal(np.asarray(image[0]), label.load())
    assert count_file(folder).voxel_volume == pytest.approx(0.7 * 0.9 * STEP, rel=1e-2 if "decimals" in kind else 1e-3)


@needs_shared
def test_real_series_lie_where_itk_and_monai_have_them():
    folder = DATA / "dicom/dcmqi/ct-3slice"
    assert np.abs(np.asarray(_read(folder).affine) - describe_label(folder).affine).max() < 1e-6
    with pytest.warns(UserWarning, match="gap of 202.5 mm"):
        _read(DATA / "dicom/monai_ct_dicom/CT_DICOM", allow_gaps=True)


def test_a_localizer_with_its_own_series_is_named(tmp_path):
    folder = write_series(tmp_path / "scan", VOXELS)
    write_series(folder, VOXELS[..., :1], "scout{}".format, ImageType=["ORIGINAL", "PRIMARY", "LOCALIZER"])
    _refused_as_scan_and_label(folder, r"found 2 DICOM series .*one per folder; scout0 is a localizer$")


def test_attributes_by_which_itk_splits_a_series_are_named(tmp_path):
    def change(image: pydicom.Dataset, k: int) -> None:
        image.SeriesNumber = 3 + (k > 4)

    folder = write_series(tmp_path / "scan", VOXELS, change=change)
    with pytest.raises(
        CaseError, match=r"read as \(6, 8, \d\), but the DICOM headers say \(6, 8, 8\).*differ in SeriesNumber"
    ):
        _read(folder)


@pytest.mark.parametrize("suffix", ["", ".dcm"])
def test_one_file_is_checked_as_a_folder_of_one_is(tmp_path, suffix):
    (file,) = write_series(tmp_path / "scan", VOXELS[..., :1], f"{{}}{suffix}".format, step_mm=5.0).iterdir()
    with pytest.warns(UserWarning, match=rf"{file}: found one slice of 5 mm, .*multiply its volumes in ml by 5"):
        _read(file)
    header = pydicom.dcmread(file)
    del header.PixelSpacing
    header.save_as(file)
    with pytest.raises(CaseError, match=rf"^{file}: found no PixelSpacing"):
        _read(file)
    # a label may come without a place, as a picture does: its voxels are counted, its millilitres are not known
    assert count_file(file).voxel_volume is None


def _places(heights: list[float]) -> list[list[float]]:
    return [[-10.0, 20.0, height] for height in heights]


UPWARDS = [30.0 + STEP * k for k in range(COUNT)]


def test_an_enhanced_file_is_placed_by_its_frames(tmp_path):
    file = write_multiframe(tmp_path / "enhanced.dcm", VOXELS, _places(UPWARDS))
    label = describe_label(file)
    assert label.shape == (6, 8, COUNT)
    assert np.array_equal(label.load(), VOXELS.transpose(1, 0, 2))
    assert label.affine.diagonal() == pytest.approx([-0.9, -0.7, STEP, 1])
    image = _read(file)
    assert np.abs(np.asarray(image.affine) - label.affine).max() < 1e-6
    assert np.array_equal(np.asarray(image[0]), label.load())


def test_frames_from_top_to_bottom_are_read_where_they_lie(tmp_path):
    downwards = slice(None, None, -1)
    file = write_multiframe(tmp_path / "a.dcm", VOXELS[..., downwards], _places(UPWARDS[downwards]))
    label, image = describe_label(file), _read(file)
    assert np.array_equal(label.load(), VOXELS.transpose(1, 0, 2))
    assert np.array_equal(np.asarray(image[0]), label.load()[..., downwards])
    assert (np.asarray(image.affine) @ (0, 0, 0, 1))[:3] == pytest.approx((10, -20, UPWARDS[-1]))


def test_frames_in_no_order_are_counted_and_not_segmented(tmp_path):
    numbers = np.random.RandomState(5).permutation(COUNT)
    file = write_multiframe(tmp_path / "a.dcm", VOXELS[..., numbers], _places([UPWARDS[k] for k in numbers]))
    assert np.array_equal(describe_label(file).load(), VOXELS.transpose(1, 0, 2))
    with pytest.raises(CaseError, match=rf"^{file}: found frames that are not stored in the order of their positions"):
        _read(file)


ENHANCED_FAULTS = {
    "uneven": (
        [30.0, 32.5, 35, 37.5, 41, 43.5, 46, 48.5],
        None,
        r"steps from 2\.5 mm \(frame 1 to frame 2\) to 3\.5 mm",
    ),
    "gap": ([30.0, 32.5, 35, 37.5, 42.5, 45, 47.5, 50], None, r"a gap of 5 mm between frame 4 and frame 5"),
    "time": ([30.0, 32.5, 35, 37.5] * 2, None, r"4 positions occurs 2 times"),
    "no spacing": (
        UPWARDS,
        lambda image: delattr(image.SharedFunctionalGroupsSequence[0], "PixelMeasuresSequence"),
        r"frame 1: found no PixelSpacing",
    ),
    "descriptions": (UPWARDS[:-1], None, r"found 8 frame\(s\), but 7 descriptions"),
    "no position": (
        UPWARDS,
        lambda image: delattr(image.PerFrameFunctionalGroupsSequence[3], "PlanePositionSequence"),
        r"frame 4: found no ImagePositionPatient",
    ),
    "no groups": (
        UPWARDS,
        lambda image: delattr(image, "PerFrameFunctionalGroupsSequence"),
        r"found 8 frames and no position of each",
    ),
}


@pytest.mark.parametrize("fault", ENHANCED_FAULTS)
def test_an_enhanced_file_with_a_fault_is_refused(tmp_path, fault):
    heights, change, message = ENHANCED_FAULTS[fault]
    file = write_multiframe(tmp_path / "enhanced.dcm", VOXELS, _places(heights), change)
    with pytest.raises(CaseError, match=rf"^{file}[:,].*{message}"):
        _read(file)


def test_a_frame_that_is_turned_in_its_own_group_is_refused(tmp_path):
    def change(image: pydicom.Dataset) -> None:
        group = image.PerFrameFunctionalGroupsSequence[3]
        group.PlaneOrientationSequence = pydicom.Sequence([pydicom.Dataset()])
        group.PlaneOrientationSequence[0].ImageOrientationPatient = [-1.0, 0, 0, 0, -1, 0]

    file = write_multiframe(tmp_path / "enhanced.dcm", VOXELS, _places(UPWARDS), change)
    _refused_as_scan_and_label(file, r"the slice frame 4 turned by 180 degrees")


def test_a_rescaling_of_one_frame_counts_for_it_alone(tmp_path):
    def change(image: pydicom.Dataset) -> None:
        group = image.PerFrameFunctionalGroupsSequence[3]
        group.PixelValueTransformationSequence = pydicom.Sequence([pydicom.Dataset()])
        group.PixelValueTransformationSequence[0].RescaleIntercept = -1000.0

    voxels = VOXELS.transpose(1, 0, 2).astype(int)
    voxels[..., 3] += 24
    file = write_multiframe(tmp_path / "enhanced.dcm", VOXELS, _places(UPWARDS), change)
    assert np.array_equal(describe_label(file).load(), voxels)
    # ITK rescales all frames as the first
    with pytest.raises(CaseError, match=rf"^{file}: found frames of different RescaleSlope"):
        _read(file)
