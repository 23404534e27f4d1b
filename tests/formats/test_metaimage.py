"""MetaImage: every voxel type, voxels in the file or beside it, and damage."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk
from label_files import assert_counted_as_written, assert_damage_is_refused, unique
from mutants import VOXELS, metaimage, raw, slices, text, write

from monai_margincal.counting.label_file import count_file
from monai_margincal.formats import check_scan, describe_label


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("name", ["label.mha", "label.mhd"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "int32", "float32"])
def test_types_and_compression(tmp_path: Path, name: str, dtype: str, compressed: bool) -> None:
    assert_counted_as_written(tmp_path / name, dtype, compressed)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("plain.mha", "cut"),
        ("plain.mha", "longer"),
        ("packed.mha", "cut"),
        ("packed.mha", "longer"),
        ("packed.mha", "flipped"),
    ],
)
def test_damaged_voxels(tmp_path: Path, name: str, fault: str) -> None:
    """A compressed file with a flipped byte is read by ITK without a complaint; here its checksum is looked at."""
    assert_damage_is_refused(tmp_path / name, fault)


LIST = "".join(f"\n{name}" for name in slices(raw))
BINARY, TEXT, PACKED = "BinaryData = True\n", "BinaryData = False\n", "BinaryData = True\nCompressedData = True\n"


def packed(array: np.ndarray) -> bytes:
    return zlib.compress(raw(array))


SIZE = f"CompressedDataSize = {len(packed(VOXELS))}\n"


@pytest.mark.parametrize(
    "files",
    [
        metaimage("LOCAL", {}, raw(VOXELS), BINARY + "HeaderSize = -1\n"),
        metaimage("LOCAL", {}, text(VOXELS), TEXT),
        metaimage("v.txt", {"v.txt": text(VOXELS)}, extra=TEXT),
        metaimage("v.raw", {"v.raw": b"XXXX" + raw(VOXELS)}, extra=BINARY + "HeaderSize = 4\n"),
        metaimage("v.raw", {"v.raw": b"XXXX" + packed(VOXELS)}, extra=PACKED + SIZE + "HeaderSize = 4\n"),
        metaimage("LIST" + LIST, slices(raw), extra=BINARY),
        metaimage("LIST 2" + LIST, slices(raw), extra=BINARY),
        metaimage("LIST 2D" + LIST, slices(packed), extra=PACKED),
        metaimage("LIST" + LIST, slices(text), extra=TEXT),
        metaimage("LIST" + LIST, slices(lambda part: b"XX" + raw(part)), extra=BINARY + "HeaderSize = 2\n"),
        metaimage("s%d.raw 0 5 1", slices(raw), extra=BINARY),
        metaimage("s%d.raw 0 5 1", slices(packed), extra=PACKED),
    ],
)
def test_every_form_is_read_as_itk_reads_it(tmp_path: Path, files: dict[str, bytes]) -> None:
    path = write(tmp_path, files)
    assert count_file(path).values == unique(VOXELS)
    assert np.array_equal(describe_label(path).load(), VOXELS)
    assert np.array_equal(sitk.GetArrayFromImage(sitk.ReadImage(str(path))).T, VOXELS)
    check_scan(path)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            metaimage("LIST" + LIST[:-7], slices(raw), extra=BINARY),
            r"found 5 files in the header, expected 6 of \(11, 9\)",
        ),
        (metaimage("LIST" + LIST + "\ns0.raw", slices(raw), extra=BINARY), "found 7 files"),
        (metaimage("LIST\n" + LIST[:-7], slices(raw), extra=BINARY), "found '' in the list of files"),
        (metaimage("LIST 3\nv.raw", {"v.raw": raw(VOXELS)}, extra=BINARY), "found the list 'LIST 3'"),
        (metaimage("LIST" + LIST, {}, extra=BINARY), r"s0\.raw: no such file"),
        (metaimage("s%d.raw 0 4 1", slices(raw), extra=BINARY), "found 5 files"),
        (metaimage("s%d.raw 0 6 1", slices(raw), extra=BINARY), "found 7 files"),
        (
            metaimage("s%d.raw 0 5", slices(raw), extra=BINARY),
            "expected a pattern and its first number, last number and step",
        ),
        (metaimage("s%s.raw 0 5 1", slices(raw), extra=BINARY), r"the pattern 's%s\.raw'"),
        (
            metaimage("LOCAL", {}, b"XXXX" + raw(VOXELS), BINARY + "HeaderSize = 4\n"),
            "found HeaderSize 4 and the voxels behind",
        ),
        (metaimage("LOCAL", {}, b"XXXX" + packed(VOXELS), PACKED + "HeaderSize = 4\n"), "found HeaderSize 4"),
        (
            metaimage("LOCAL", {}, b"XXXX" + raw(VOXELS), BINARY + "HeaderSize = -1\n"),
            "found more bytes|found 1192 bytes",
        ),
        (metaimage("v.raw", {"v.raw": b"XXXX" + raw(VOXELS)}, extra=BINARY + "HeaderSize = -1\n"), r"v\.raw: found"),
        (metaimage("LOCAL", {}, packed(VOXELS), PACKED), "no field 'CompressedDataSize'"),
        (metaimage("LOCAL", {}, text(VOXELS)[:-2], TEXT), "found 593 numbers as text, expected 594"),
        (metaimage("LOCAL", {}, text(VOXELS) + b"1\n", TEXT), "found 595 numbers as text"),
        (metaimage("LOCAL", {}, text(VOXELS)[:-2] + b"70000\n", TEXT), "found numbers from 0 to 70000, expected int16"),
        (metaimage("LOCAL", {}, raw(VOXELS), "BinaryData = Maybe\n"), "found BinaryData = 'Maybe'"),
    ],
)
def test_forms_that_promise_something_else_than_they_hold(
    tmp_path: Path, files: dict[str, bytes], message: str
) -> None:
    """ITK reads most of them, some with memory as it was in the place of voxels; some end the process."""
    path = write(tmp_path, files)
    for look in (count_file, check_scan):
        with pytest.raises((ValueError, FileNotFoundError), match=message) as raised:
            look(path)
        assert str(raised.value).startswith(str(tmp_path))


def test_a_list_whose_last_line_does_not_end(tmp_path: Path) -> None:
    """ITK leaves the last slice as memory was."""
    path = write(tmp_path, metaimage("LIST" + LIST, slices(raw), extra=BINARY))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"a\.mhd: found a list of files that does not end with a line break"):
        count_file(path)


def test_itk_reads_scans_of_lower_case_endings_only(tmp_path: Path) -> None:
    path = tmp_path / "A.MHA"
    path.write_bytes(metaimage("LOCAL", {}, raw(VOXELS), BINARY)["a.mha"])
    assert count_file(path).values == unique(VOXELS)
    with pytest.raises(ValueError, match=r"A\.MHA: found the ending \.MHA, expected \.mha"):
        check_scan(path)
