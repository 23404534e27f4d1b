"""Every label file of the shared data and every awkward one made here: counted right, or refused with its name."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk
from shared import SHARED, needs_shared

from monai_margincal.counting.label_file import count_file
from monai_margincal.counting.voxel_counts import value_counts
from monai_margincal.formats import describe_label

DATA = (SHARED or Path()) / "data"

#: file -> counts that README.md of the shared data gives
STATED = {
    "lung_ct/lung1_label.nrrd": {0: 12582075, 1: 837},
    "lung_ct/lung2_label.nrrd": {0: 15966140, 1: 24644},
    "lung_ct/lung1_crop_label.nii.gz": {0: 192 * 192 * 24 - 837, 1: 837},
    "lung_ct/lung2_crop_label.nii.gz": {0: 192 * 192 * 24 - 24644, 1: 24644},
    "chest_labelmaps/crop_ct_interactiveLobeSegmentation.nrrd": {
        0: 7188044,
        4: 1416421,
        5: 1133405,
        6: 1201534,
        7: 2300091,
        8: 1440102,
        512: 103443,
        516: 7992,
        517: 63,
        518: 9622,
        519: 30303,
        520: 11252,
    },
    "chest_labelmaps/wholeLung-64.nrrd": {0: 257960, 1: 65624},
    "abdomen_ct/example_seg_fast_brain_EMPTY.nii.gz": {0: 369660},
    "spleen_ct/spleen_8_label.nii.gz": {0: 8225152, 1: 163456},
}
#: label files that a second reader must count the same
LABELS = [
    *STATED,
    "abdomen_ct/example_seg.nii.gz",
    "abdomen_ct/example_seg_fast_force_split.nii.gz",
    "chest_labelmaps/lm-64.nrrd",
    "chest_labelmaps/lm-64-transformed.nrrd",
    "chest_labelmaps/ct-patch_ILDClassification.nrrd",
    "chest_labelmaps/simple_lm.nrrd",
    "dicom/dcmqi/liver_spine_seg.nrrd",
    "dicom/dcmqi/liver_spine_gapped_seg.nrrd",
    "dicom/dcmqi/partial_overlaps-1.nrrd",
    "dicom/dcmqi/spine_seg_label5.nrrd",
    "dicom/monai_ct_dicom/anatomical_label.nii.gz",
    "dicom/monai_ct_dicom/reoriented_anat_moved_label.nii.gz",
    "odd/nibabel/standard.nii.gz",
    "odd/nifti_reader_js/with_extension.nii.gz",
    "surgical/green_seg.png",
]
#: what is no label -> what the refusal says
REFUSED = {
    "abdomen_ct/example_ct.nii.gz": "2598 label value.*looks like an image",
    "abdomen_ct/spine_report_rgb.nii.gz": "RGB colours",
    "chest_labelmaps/ct-64.nrrd": "looks like an image",
    "chest_labelmaps/simple_ct.nrrd": "from -1024 to -30",
    "dicom/dcmqi/ct-3slice": "looks like an image",
    "dicom/dcmqi/partial_overlaps.dcm": r"overlap in 3134 voxel.*\{1: 9602, 2: 11888, 3: 10743, 4: 6693, 5: 4713\}",
    "dicom/highdicom/seg_image_ct_binary_overlap.dcm": r"overlap in 16 voxel.*\{1: 64, 2: 16\}",
    "dicom/highdicom/seg_image_ct_true_fractional.dcm": "type FRACTIONAL",
    "dicom/pydicom/MR_truncated.dcm": "less than expected",
    "dicom/pydicom/liver_1frame.dcm": r"found 1 frame\(s\), but 3 descriptions",
    "dicom/monai_ct_dicom/CT_DICOM": "gap of 202.5 mm.*a slice is missing",
    "hippocampus_mr": "found no DICOM file in this folder.*give a pattern",
    "odd/nibabel/anatomical.nii": "looks like an image",
    "odd/nibabel/functional.nii": "found 4 axes",
    "odd/nibabel/example_nifti2.nii.gz": r"found 4 axes \(shape \(32, 20, 12, 2\)\)",
    "odd/nifti_reader_js/air.hdr.gz": "not integers: 0.362956",
    "odd/nifti_reader_js/big.nii.gz": "not integers: -8.71075",
    "odd/nifti_reader_js/not-nifti.nii": "begin no NIfTI header",
    "surgical/green.png": "mode RGB",
    "README.md": "file name ending '.md'",
}


def unique(array: np.ndarray) -> dict[int, int]:
    values, counts = np.unique(array, return_counts=True)
    return {int(value): int(count) for value, count in zip(values, counts, strict=True)}


@needs_shared
@pytest.mark.parametrize("name", LABELS)
def test_shared_label_equals_a_second_reader(name: str) -> None:
    path = DATA / name
    count = count_file(path)
    # SimpleITK for NIfTI and PNG, which are read by others here; the stated truth for NRRD, which it reads here
    assert count.values == unique(sitk.GetArrayFromImage(sitk.ReadImage(str(path))))
    if name in STATED:
        assert count.values == STATED[name]


@needs_shared
@pytest.mark.parametrize("name", LABELS)
def test_stream_equals_the_general_reader(name: str) -> None:
    image = describe_label(DATA / name)
    assert count_file(DATA / name).values == value_counts(image.load())
    assert ("stream" in count_file(DATA / name).reader) == (image.body is not None)


@needs_shared
@pytest.mark.parametrize("name", REFUSED)
def test_shared_non_label_is_refused_by_name(name: str) -> None:
    path = DATA / name
    with pytest.raises(ValueError, match=REFUSED[name]) as caught:
        count_file(path)
    assert str(caught.value).startswith(str(path))


@needs_shared
def test_header_without_image_is_a_missing_file() -> None:
    with pytest.raises(FileNotFoundError, match=r"nifti1\.hdr.*nifti1\.img"):
        count_file(DATA / "odd" / "nibabel" / "nifti1.hdr")


@needs_shared
def test_segmentations_count_every_segment() -> None:
    """MONAI/issues/7055, /8468, MONAILabel/issues/565, MONAILabel/pull/1011: not only the last segment, no invented frame."""
    assert count_file(DATA / "dicom/dcmqi/liver.dcm").values == {0: 679334, 1: 107098}
    assert count_file(DATA / "dicom/dcmqi/sparse-labelmap-ppv5.dcm").values == {0: 1194, 1: 630}
    # one of its four slices holds no segment and is not stored: it is background all the same
    assert count_file(DATA / "dicom/highdicom/seg_image_ct_binary.dcm").values == {0: 386, 1: 638}


@needs_shared
def test_geometry_of_flipped_and_oblique_labels() -> None:
    """MONAI/issues/5332, /2902, /6944: volumes are positive, and readers agree on the spacing."""
    straight = count_file(DATA / "chest_labelmaps" / "lm-64.nrrd")
    oblique = count_file(DATA / "chest_labelmaps" / "lm-64-transformed.nrrd")
    assert straight.spacing == pytest.approx(oblique.spacing)
    assert straight.voxel_volume == pytest.approx(4.171872**2 * 3.98734177)
    assert oblique.voxel_volume == pytest.approx(straight.voxel_volume)
    for name in ("chest_labelmaps/lm-64-transformed.nrrd", "spleen_ct/spleen_8_label.nii.gz"):
        image = sitk.ReadImage(str(DATA / name))
        assert count_file(DATA / name).spacing == pytest.approx(image.GetSpacing(), rel=1e-6)
        affine = np.array(count_file(DATA / name).affine)
        corner = np.array(image.TransformIndexToPhysicalPoint((3, 2, 1))) * [-1, -1, 1]
        assert (affine @ [3, 2, 1, 1])[:3] == pytest.approx(corner, rel=1e-5, abs=1e-3)
    assert count_file(DATA / "chest_labelmaps" / "simple_lm.nrrd").voxel_volume is None


LABEL = np.random.default_rng(0).integers(0, 4, (9, 8, 7))


def save(path: Path, array: np.ndarray, affine: np.ndarray | None = None, **header: float) -> Path:
    image = nib.Nifti1Image(array, np.eye(4) if affine is None else affine, dtype=array.dtype)
    for field, value in header.items():
        image.header[field] = value
    nib.save(image, path)
    return path


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz", ".hdr"])
@pytest.mark.parametrize(
    "dtype", ["uint8", "int8", "uint16", "int16", "int32", "uint32", "int64", "uint64", "float32", "float64"]
)
@pytest.mark.parametrize("order", ["<", ">"])
def test_nifti_types_and_byte_orders(tmp_path: Path, suffix: str, dtype: str, order: str) -> None:
    header_class = nib.Nifti1Pair if suffix == ".hdr" else nib.Nifti1Image
    header = header_class.header_class(endianness=order)
    header.set_data_dtype(dtype)
    image = header_class(LABEL.astype(dtype), np.eye(4), header)
    path = tmp_path / f"label{suffix}"
    nib.save(image, path)
    assert count_file(path).values == unique(LABEL)
    assert count_file(path).dtype == dtype


def test_nifti2_and_extension_and_trailing_axes(tmp_path: Path) -> None:
    path = tmp_path / "label.nii.gz"
    image = nib.Nifti2Image(LABEL.astype(np.uint8)[..., None, None], np.eye(4))
    image.header.extensions.append(nib.nifti1.Nifti1Extension(6, b"a comment of some length"))
    nib.save(image, path)
    assert count_file(path).values == unique(LABEL)
    assert "stream gzip" in count_file(path).reader


@pytest.mark.parametrize(
    ("dtype", "value"), [("uint16", 60000), ("int32", 100000), ("float32", 100000), ("int64", 2**40)]
)
def test_large_ids_survive_the_file(tmp_path: Path, dtype: str, value: int) -> None:
    """MONAI/issues/5505: a reader that returns float would lose them or their type."""
    array = np.array([[[0, value, value]]]).astype(dtype)
    assert count_file(save(tmp_path / "label.nii.gz", array)).values == {0: 1, value: 2}


def with_slope(path: Path, slope: float, intercept: float) -> Path:
    """A uint8 file whose header scales: nibabel resets slopes on saving, so the bytes are set."""
    content = bytearray(save(path, LABEL.astype(np.uint8)).read_bytes())
    struct.pack_into("<ff", content, 112, slope, intercept)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(("slope", "intercept"), [(2, 1), (1, 5), (3, 0), (0, 0), (1, 0), (float("nan"), 0)])
def test_slope_and_intercept_as_three_readers(tmp_path: Path, slope: float, intercept: float) -> None:
    """torchio/issues/317: scl_slope is applied by every reader alike."""
    import itk

    path = with_slope(tmp_path / "label.nii", slope, intercept)
    found = count_file(path).values
    assert found == unique(np.asanyarray(nib.load(path).dataobj))
    assert found == unique(sitk.GetArrayFromImage(sitk.ReadImage(str(path))))
    assert found == unique(itk.array_from_image(itk.imread(str(path))))


@pytest.mark.parametrize(
    ("slope", "intercept", "message"),
    [(0.5, 0, "not integers: 0.5, 1.5"), (2, -1, "from -1 to 5"), (1, float("inf"), "invalid slope or intercept")],
)
def test_slope_and_intercept_that_make_no_label(tmp_path: Path, slope: float, intercept: float, message: str) -> None:
    path = with_slope(tmp_path / "label.nii", slope, intercept)
    with pytest.raises(ValueError, match=message) as caught:
        count_file(path)
    assert str(caught.value).startswith(str(path))


def test_scaled_negative_label_counts_when_declared(tmp_path: Path) -> None:
    path = with_slope(tmp_path / "label.nii", 2, -1)
    assert count_file(path, ids=[-1, 1, 3, 5]).values == {2 * k - 1: n for k, n in unique(LABEL).items()}


@pytest.mark.parametrize("affine", [np.diag([-2.0, 2, 3, 1]), np.diag([2.0, -2, -3, 1])[[1, 2, 0, 3]]])
def test_volume_of_a_flipped_axis_is_positive(tmp_path: Path, affine: np.ndarray) -> None:
    assert count_file(save(tmp_path / "label.nii", LABEL.astype(np.uint8), affine)).voxel_volume == pytest.approx(12.0)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("name", ["label.mha", "label.mhd", "label.nrrd", "label.nhdr"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "int32", "float32"])
def test_metaimage_and_nrrd(tmp_path: Path, name: str, dtype: str, compressed: bool) -> None:
    array = LABEL.astype(dtype)
    image = sitk.GetImageFromArray(array.transpose())
    image.SetSpacing((0.5, 0.6, 2.0))
    path = tmp_path / name
    sitk.WriteImage(image, str(path), compressed)
    count = count_file(path)
    assert count.values == unique(array) == value_counts(describe_label(path).load())
    assert count.shape == array.shape
    assert count.spacing == pytest.approx((0.5, 0.6, 2.0))
    assert "stream" in count.reader


def test_nrrd_encodings_without_a_stream(tmp_path: Path) -> None:
    nrrd = pytest.importorskip("nrrd")
    for encoding in ("ASCII", "bzip2"):
        path = tmp_path / f"{encoding}.nrrd"
        nrrd.write(str(path), LABEL.astype(np.uint8), {"encoding": encoding})
        if encoding == "ASCII":
            assert count_file(path).values == unique(LABEL)
            assert "SimpleITK" in count_file(path).reader
        else:
            with pytest.raises(ValueError, match=r"bzip2\.nrrd: cannot be read"):
                count_file(path)


@pytest.mark.parametrize("mode", ["1", "L", "P", "I;16"])
def test_png_modes(tmp_path: Path, mode: str) -> None:
    from PIL import Image

    array = LABEL[:, :, 0] % 2 if mode == "1" else LABEL[:, :, 0]
    image = Image.fromarray(array.astype({"1": bool, "I;16": np.uint16}.get(mode, np.uint8)))
    if mode == "P":
        image.putpalette([0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255])
    image.save(tmp_path / "mask.png")
    assert count_file(tmp_path / "mask.png").values == unique(array)


def test_png_mask_of_0_and_255_is_explained(tmp_path: Path) -> None:
    from PIL import Image

    path = tmp_path / "mask.png"
    Image.fromarray(np.array([[0, 255], [255, 0]], np.uint8)).save(path)
    with pytest.raises(
        ValueError, match=r"mask\.png: found the label value\(s\) 255 \(2 voxels\) beside 0.*drawn with 0 and 255"
    ):
        count_file(path, ids=[0, 1])
    assert count_file(path, ids=[0, 255]).values == {0: 2, 255: 2}


def test_png_grey_of_two_bits_is_refused(tmp_path: Path) -> None:
    """Readers stretch 0, 1, 2, 3 to 0, 85, 170, 255: neither is surely what was drawn."""
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 4, 1, 2, 0, 0, 0, 0)
    pixels = chunk(b"IDAT", zlib.compress(b"\0\x1b"))
    path = tmp_path / "mask.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + pixels + chunk(b"IEND", b""))
    with pytest.raises(ValueError, match=r"mask\.png: found grey values of 2 bits"):
        count_file(path)


def test_damaged_png_is_refused(tmp_path: Path) -> None:
    """Pillow reads over a wrong checksum of the pixels; here it is looked at."""
    from PIL import Image

    path = tmp_path / "mask.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 5, (40, 50)).astype(np.uint8)).save(path)
    content = path.read_bytes()
    for damaged in (
        content[:-1],
        content[:-12],
        content + b"\0",
        content[:200] + bytes([content[200] ^ 4]) + content[201:],
    ):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"mask\.png: (found|cannot be read)"):
            count_file(path)


def test_one_hot_channels_of_a_file(tmp_path: Path) -> None:
    hot = np.stack([k == LABEL for k in range(4)], -1).astype(np.uint8)
    path = save(tmp_path / "label.nii.gz", hot)
    assert count_file(path, ids=range(4)).values == unique(LABEL)
    with pytest.raises(ValueError, match=r"label\.nii\.gz: found 4 axes .*\(3 ids are declared\)"):
        count_file(path, ids=range(3))
    hot[0, 0, 0] = 1
    with pytest.raises(ValueError, match=r"label\.nii\.gz: found 1 voxel\(s\) in more than one class"):
        count_file(save(path, hot), ids=range(4))


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


def _fault(path: Path, kind: str) -> Path:
    content = save(path, LABEL.astype(np.uint8)).read_bytes()
    plain = gzip.decompress(content) if path.suffix == ".gz" else content
    changed = {
        "zero bytes": b"",
        "text": b"this is not an image, but somebody called it so\n" * 20,
        "cut in the header": content[:100],
        "cut in the body": content[: len(content) - 60],
        "cut by one byte": content[:-1],
    }.get(kind)
    if changed is None:
        damaged = bytearray(plain)
        if kind == "longer than the header says":
            damaged += b"\0" * 7
        elif kind == "fewer slices in the header":
            struct.pack_into("<h", damaged, 46, 6)
        elif kind == "more slices in the header":
            struct.pack_into("<h", damaged, 46, 8)
        elif kind == "negative size":
            struct.pack_into("<h", damaged, 44, -8)
        elif kind == "zero size":
            struct.pack_into("<h", damaged, 44, 0)
        elif kind == "unknown type":
            struct.pack_into("<h", damaged, 70, 999)
        elif kind == "contradicting bits":
            struct.pack_into("<h", damaged, 72, 16)
        elif kind == "offset inside the header":
            struct.pack_into("<f", damaged, 108, 100.0)
        elif kind == "offset beyond the file":
            struct.pack_into("<f", damaged, 108, 1e9)
        changed = gzip.compress(damaged) if path.suffix == ".gz" else bytes(damaged)
    path.write_bytes(changed)
    return path


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("zero bytes", "found 0 bytes, too few|not compressed by gzip"),
        ("text", "begin no NIfTI header|not compressed by gzip"),
        ("cut in the header", "too few for a header|cannot be read|truncated"),
        ("cut in the body", "truncated|cannot be read.*ended before"),
        ("cut by one byte", "truncated|cannot be read"),
        ("longer than the header says", "found more bytes after the last voxel"),
        ("fewer slices in the header", "found more bytes after the last voxel"),
        ("more slices in the header", "truncated"),
        ("negative size", "expected sizes of at least 1"),
        ("zero size", "expected sizes of at least 1"),
        ("unknown type", "unknown data type code 999"),
        ("contradicting bits", "16 bits per voxel for the type uint8"),
        ("offset inside the header", "data offset 100.*expected an integer >= 352"),
        ("offset beyond the file", "truncated or its header damaged"),
    ],
)
def test_damaged_nifti_is_refused_by_name(tmp_path: Path, suffix: str, kind: str, message: str) -> None:
    path = _fault(tmp_path / f"label{suffix}", kind)
    with pytest.raises(ValueError, match=message) as caught:
        count_file(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("name", "fault"),
    [(name, fault) for name in ("label.nii", "label.nii.gz", "label.hdr") for fault in ("cut", "longer")]
    + [("label.nii.gz", "checksum")],
)
def test_damaged_file_that_nibabel_reads(tmp_path: Path, name: str, fault: str) -> None:
    """Scaled files and pairs are read by nibabel, which stops at the last voxel and does not check what follows."""
    path = save(tmp_path / name.replace(".gz", ""), LABEL.astype(np.uint8)) if name != "label.hdr" else tmp_path / name
    if name == "label.hdr":
        nib.save(nib.Nifti1Pair(LABEL.astype(np.uint8), np.eye(4)), path)
    else:
        content = bytearray(path.read_bytes())
        struct.pack_into("<ff", content, 112, 2.0, 1.0)
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    path = tmp_path / name
    assert "nibabel" in count_file(path).reader
    damaged = path.with_suffix(".img") if name == "label.hdr" else path
    voxels = bytearray(damaged.read_bytes())
    if fault == "checksum":
        voxels[-6] ^= 1
    damaged.write_bytes(voxels[:-1] if fault == "cut" else voxels + b"\0\1" if fault == "longer" else voxels)
    with pytest.raises(ValueError, match="label") as caught:
        count_file(path)
    assert str(caught.value).startswith(str(path))


def test_wrong_checksum_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "label.nii.gz", LABEL.astype(np.uint8))
    content = bytearray(path.read_bytes())
    content[-6] ^= 1
    path.write_bytes(content)
    with pytest.raises(
        ValueError, match=r"label\.nii\.gz: cannot be read.*CRC|label\.nii\.gz: cannot be read.*[Cc]hecksum"
    ):
        count_file(path)


@pytest.mark.parametrize(
    ("name", "fault"),
    [(name, fault) for name in ("plain.mha", "packed.mha", "plain.nrrd", "packed.nrrd") for fault in ("cut", "longer")]
    + [("packed.mha", "flipped"), ("packed.nrrd", "flipped")],
)
def test_damaged_metaimage_and_nrrd(tmp_path: Path, name: str, fault: str) -> None:
    """A compressed MetaImage with a flipped byte is read by ITK without a complaint; here its checksum is looked at."""
    path = tmp_path / name
    sitk.WriteImage(sitk.GetImageFromArray(LABEL.astype(np.uint16)), str(path), name.startswith("packed"))
    content = bytearray(path.read_bytes())
    if fault == "cut":
        content = content[:-3]
    elif fault == "longer":
        content += b"abc"
    else:
        content[-20] ^= 0x55
    path.write_bytes(content)
    with pytest.raises(ValueError, match=name.replace(".", r"\.")):
        count_file(path)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([[[0.0, np.nan]]]), "not integers: nan"),
        (np.array([[[0.0, 1.5]]]), "not integers: 1.5"),
        (np.array([[[0, -1, 1]]], np.int16), r"from -1 to 1, expected at most 1024 integer class ids >= 0"),
    ],
)
def test_values_that_are_no_labels(tmp_path: Path, array: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=rf"label\.nii: found .*{message}"):
        count_file(save(tmp_path / "label.nii", array))


def test_name_and_compression_must_agree(tmp_path: Path) -> None:
    path = save(tmp_path / "label.nii.gz", LABEL.astype(np.uint8))
    plain = tmp_path / "really_compressed.nii"
    plain.write_bytes(path.read_bytes())
    with pytest.raises(
        ValueError, match=r"really_compressed\.nii: found a file that is compressed by gzip, against its name"
    ):
        count_file(plain)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent\.nii\.gz: no such file"):
        count_file(tmp_path / "absent.nii.gz")
