"""NIfTI files: every voxel type and byte order, slope and intercept, and damage of every kind."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk
from label_files import LABEL, save, unique

from monai_margincal.counting.label_file import count_file
from monai_margincal.formats import check_scan


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
        ("zero bytes", "found an empty file, expected an image"),
        ("text", "do not start a NIfTI header|not compressed by gzip"),
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


def test_name_and_compression_must_agree(tmp_path: Path) -> None:
    path = save(tmp_path / "label.nii.gz", LABEL.astype(np.uint8))
    plain = tmp_path / "really_compressed.nii"
    plain.write_bytes(path.read_bytes())
    with pytest.raises(
        ValueError,
        match=r"really_compressed\.nii: found a file that is compressed by gzip, although its name says otherwise",
    ):
        count_file(plain)


@pytest.mark.parametrize("first", [1, 100, 347, 352, 500])
def test_gzip_of_several_members(tmp_path: Path, first: int) -> None:
    """Programs that compress in parallel write many; the first may end inside the header."""
    path = save(tmp_path / "label.nii.gz", LABEL.astype(np.uint8))
    plain = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(b"") + gzip.compress(plain[:first]) + gzip.compress(plain[first:]))
    assert count_file(path).values == unique(LABEL)
    check_scan(path)


@pytest.mark.parametrize("name", ["LABEL.NII.GZ", "Label.Nii", "LABEL.NII"])
@pytest.mark.parametrize("slope", [1, 2])
def test_endings_in_any_letter_case(tmp_path: Path, name: str, slope: int) -> None:
    content = with_slope(tmp_path / "label.nii", slope, 0).read_bytes()
    path = tmp_path / "upper" / name
    path.parent.mkdir()
    path.write_bytes(gzip.compress(content) if name.endswith("GZ") else content)
    assert count_file(path).values == {slope * value: count for value, count in unique(LABEL).items()}
    check_scan(path)
