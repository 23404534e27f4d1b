"""DICOM SEG: read back by pydicom and highdicom, voxel by voxel where the mask has them."""

from __future__ import annotations

import shutil

import numpy as np
import pydicom
import pytest
import torch
from monai.data import MetaTensor
from monai.transforms import LoadImage
from pydicom.dataset import FileMetaDataset
from shared import SHARED, needs_shared

highdicom = pytest.importorskip("highdicom", reason="the extra `dicom` is not installed")

from monai_margincal.outputs import Outputs, SaveImageOutputsd  # noqa: E402
from monai_margincal.outputs.kinds.dicom_seg import series_on_grid  # noqa: E402

SHAPE = (6, 5, 4)  # columns, rows, planes
LESION = {
    "category": ["49755003", "SCT", "Morphologically Abnormal Structure"],
    "type": ["52988006", "SCT", "Lesion"],
}


def saver(folder, names=("lesion",), **options):
    """The transform that writes DICOM SEG alone."""
    options = {"segments": dict.fromkeys(names, LESION), **options.pop("options", {})}
    given = {"class_names": ["background", *names], "dicom_seg": options}
    return SaveImageOutputsd("pred", Outputs("dicom_seg", folder, **given))


@pytest.fixture
def series(tmp_path):
    """A tilted CT series whose file names run against the order of its planes."""
    folder = tmp_path / "data" / "1.2.840.7"
    folder.mkdir(parents=True)
    angle = np.radians(10)
    along_row, along_column = np.array([1.0, 0, 0]), np.array([0, np.cos(angle), np.sin(angle)])
    normal = np.cross(along_row, along_column)
    study, uid, frame = (pydicom.uid.generate_uid() for _ in range(3))
    for k in range(SHAPE[2]):
        image = pydicom.Dataset()
        image.SOPClassUID, image.SOPInstanceUID = pydicom.uid.CTImageStorage, pydicom.uid.generate_uid()
        image.StudyInstanceUID, image.SeriesInstanceUID, image.FrameOfReferenceUID = study, uid, frame
        image.Modality, image.PatientID, image.PatientName, image.StudyID = "CT", "P1", "Doe^Jane", "1"
        image.PatientBirthDate, image.PatientSex, image.AccessionNumber = "19700101", "F", ""
        image.StudyDate, image.StudyTime, image.ReferringPhysicianName = "20200101", "120000", ""
        image.SeriesNumber, image.InstanceNumber = 3, SHAPE[2] - k
        image.ImagePositionPatient = [float(v) for v in np.array([-10.0, 20, 30]) + 2.5 * k * normal]
        image.ImageOrientationPatient = [*along_row.tolist(), *along_column.tolist()]
        image.PixelSpacing, image.SliceThickness = [0.7, 0.9], 2.5
        image.Rows, image.Columns, image.SamplesPerPixel = SHAPE[1], SHAPE[0], 1
        image.PhotometricInterpretation, image.PixelRepresentation = "MONOCHROME2", 1
        image.BitsAllocated, image.BitsStored, image.HighBit = 16, 16, 15
        image.RescaleSlope, image.RescaleIntercept = 1, -1024
        image.PixelData = np.full((SHAPE[1], SHAPE[0]), k, np.int16).tobytes()
        image.file_meta = FileMetaDataset()
        image.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
        image.save_as(folder / f"{9 - k}", enforce_file_format=True)
    return folder


def mask_on(folder, seed=0, share=0.3):
    image = LoadImage(ensure_channel_first=True)(str(folder))
    voxels = torch.rand(image.shape, generator=torch.Generator().manual_seed(seed)) < share
    return MetaTensor(voxels.to(torch.uint8)).copy_meta_from(image)


def frames_in_space(segmentation):
    """LPS position of every marked pixel of segment 1, from the object's own attributes."""
    found = set()
    shared = segmentation.SharedFunctionalGroupsSequence[0]
    rows, columns = np.reshape(shared.PlaneOrientationSequence[0].ImageOrientationPatient, (2, 3)).astype(float)
    down, right = (float(v) for v in shared.PixelMeasuresSequence[0].PixelSpacing)
    pixels = segmentation.pixel_array.reshape(-1, segmentation.Rows, segmentation.Columns)
    for plane, frame in zip(pixels, segmentation.PerFrameFunctionalGroupsSequence, strict=True):
        origin = np.asarray(frame.PlanePositionSequence[0].ImagePositionPatient, dtype=float)
        for r, c in np.argwhere(plane):
            found.add(tuple((origin + rows * right * c + columns * down * r).round(2).tolist()))
    return found


def voxels_in_space(mask):
    affine = np.diag([-1, -1, 1, 1]) @ np.asarray(mask.affine)
    return {tuple((affine @ (*index, 1))[:3].round(2).tolist()) for index in np.argwhere(np.asarray(mask[0]))}


def test_the_object_lies_where_the_mask_lies(series, tmp_path):
    mask = mask_on(series)
    saver(tmp_path / "out", options={"algorithm": "Some Net", "content_label": "LESION"})({"pred": mask})
    (path,) = (tmp_path / "out").iterdir()
    assert path.name == "1.2.840.7_seg.dcm"
    segmentation = highdicom.seg.segread(path)
    assert segmentation.segmentation_type.value == "BINARY"
    (segment,) = segmentation.SegmentSequence
    assert segment.SegmentLabel == "lesion"
    for code, given in (
        (segment.SegmentedPropertyCategoryCodeSequence[0], LESION["category"]),
        (segment.SegmentedPropertyTypeCodeSequence[0], LESION["type"]),
    ):
        assert [code.CodeValue, code.CodingSchemeDesignator, code.CodeMeaning] == given
    assert segment.SegmentationAlgorithmIdentificationSequence[0].AlgorithmName == "Some Net"
    assert (segmentation.ContentLabel, segmentation.ManufacturerModelName) == ("LESION", "Some Net")
    assert str(segmentation.PatientName) == "Doe^Jane"
    source = [pydicom.dcmread(file) for file in series.iterdir()]
    assert segmentation.StudyInstanceUID == source[0].StudyInstanceUID
    assert segmentation.SeriesInstanceUID != source[0].SeriesInstanceUID
    assert segmentation.FrameOfReferenceUID == source[0].FrameOfReferenceUID
    assert frames_in_space(segmentation) == voxels_in_space(mask)
    assert int(segmentation.pixel_array.sum()) == int(mask.sum())


def test_only_one_class_of_several_occurs(series, tmp_path):
    mask = mask_on(series) * 2
    saver(tmp_path / "out", names=("a", "b"))({"pred": mask})
    (path,) = (tmp_path / "out").iterdir()
    segmentation = highdicom.seg.segread(path)
    assert [segment.SegmentLabel for segment in segmentation.SegmentSequence] == ["b"]
    assert segmentation.ContentLabel == "SEGMENTATION"


@pytest.mark.parametrize("described", [(), ("a",), ("a", "b", "c")])
def test_every_class_needs_a_description(tmp_path, described):
    segments = dict.fromkeys(described, LESION)
    with pytest.raises(ValueError, match=r"segments of dicom_seg: found .*expected one of each of \['a', 'b'\]"):
        saver(tmp_path, names=("a", "b"), options={"segments": segments})


def test_an_empty_mask_writes_nothing(series, tmp_path):
    saver(tmp_path / "out")({"pred": mask_on(series, share=0.0)})
    assert not (tmp_path / "out").exists()


def test_the_series_on_the_grid_is_taken_from_a_folder_of_two(series, tmp_path):
    mask = mask_on(series)
    for path in list(series.iterdir()):
        other = pydicom.dcmread(path)
        other.SeriesInstanceUID, other.SOPInstanceUID = "1.2.3", pydicom.uid.generate_uid()
        other.ImagePositionPatient = [0.0, 0.0, float(other.InstanceNumber)]
        other.save_as(series / f"other{path.name}", enforce_file_format=True)
    (series / "notes.txt").write_text("not DICOM")
    saver(tmp_path / "out")({"pred": mask})
    (path,) = (tmp_path / "out").iterdir()
    assert frames_in_space(highdicom.seg.segread(path)) == voxels_in_space(mask)


def test_a_transposed_series_is_not_on_the_grid(series):
    """Of a square plane with rows and columns exchanged, the first and the last pixel stay in place."""
    edge = 5
    for path in series.iterdir():
        image = pydicom.dcmread(path)
        image.Columns = image.Rows = edge
        image.PixelSpacing = [0.8, 0.8]
        image.PixelData = bytes(2 * edge * edge)
        image.save_as(path, enforce_file_format=True)
    affine = np.asarray(LoadImage()(str(series)).affine)
    shape = (edge, edge, SHAPE[2])
    assert len(series_on_grid(str(series), shape, affine)) == SHAPE[2]
    with pytest.raises(ValueError, match=r"none of its 1 DICOM series has the 4 planes"):
        series_on_grid(str(series), shape, affine[:, [1, 0, 2, 3]])


def test_what_is_no_series_is_refused(series, tmp_path):
    save = saver(tmp_path / "out")
    mask = mask_on(series)
    mask.meta["filename_or_obj"] = str(tmp_path / "scan.nii.gz")
    with pytest.raises(ValueError, match=r"scan\.nii\.gz: a DICOM SEG refers to a DICOM series, found no folder"):
        save({"pred": mask})
    mask.meta["filename_or_obj"] = str(tmp_path)
    with pytest.raises(ValueError, match="found no DICOM images in the folder"):
        save({"pred": mask})
    (series / "9").unlink()
    mask.meta["filename_or_obj"] = str(series)
    with pytest.raises(ValueError, match=r"none of its 1 DICOM series has the 4 planes of 5 rows and 6 columns"):
        save({"pred": mask})
    assert not (tmp_path / "out").exists()


@needs_shared
def test_a_real_series(tmp_path):
    folder = tmp_path / "ct"
    shutil.copytree(SHARED / "data" / "dicom" / "dcmqi" / "ct-3slice", folder)
    mask = mask_on(folder, share=0.001)
    saver(tmp_path / "out")({"pred": mask})
    (path,) = (tmp_path / "out").iterdir()
    assert frames_in_space(highdicom.seg.segread(path)) == voxels_in_space(mask)


def test_a_localizer_or_a_report_beside_the_series_is_left_alone(series, tmp_path):
    mask = mask_on(series)
    first = next(path for path in series.iterdir() if path.name == "9")
    scout = pydicom.dcmread(first)
    scout.ImageType, scout.SOPInstanceUID = ["ORIGINAL", "PRIMARY", "LOCALIZER"], pydicom.uid.generate_uid()
    scout.save_as(series / "scout", enforce_file_format=True)
    unplaced = pydicom.dcmread(first)
    del unplaced.PixelSpacing
    unplaced.save_as(series / "capture", enforce_file_format=True)
    saver(tmp_path / "out")({"pred": mask})
    (path,) = (tmp_path / "out").iterdir()
    assert frames_in_space(highdicom.seg.segread(path)) == voxels_in_space(mask)


def test_the_distance_of_the_nearest_series_is_said(series):
    affine = np.asarray(LoadImage()(str(series)).affine, dtype=np.float64)
    affine[0, 3] += 0.3
    with pytest.raises(ValueError, match=r"of the mask within 0\.1 mm, the nearest lies 0\.3 mm away"):
        series_on_grid(str(series), SHAPE, affine)
