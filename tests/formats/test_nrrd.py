"""NRRD: every voxel type, voxels in the file or beside it, and damage."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import itk
import numpy as np
import pytest
from label_files import LABEL, assert_counted_as_written, assert_damage_is_refused, unique
from mutants import VOXELS, nrrd, raw, slices, text, write

from monai_margincal.counting.label_file import count_file
from monai_margincal.formats import check_scan, describe_label


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("name", ["label.nrrd", "label.nhdr"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "int32", "float32"])
def test_types_and_compression(tmp_path: Path, name: str, dtype: str, compressed: bool) -> None:
    assert_counted_as_written(tmp_path / name, dtype, compressed)


def test_encodings_of_pynrrd(tmp_path: Path) -> None:
    pynrrd = pytest.importorskip("nrrd")
    for encoding, name in (("ASCII", "text"), ("bzip2", "bzip2")):
        path = tmp_path / f"{encoding}.nrrd"
        pynrrd.write(str(path), LABEL.astype(np.uint8), {"encoding": encoding})
        assert count_file(path).values == unique(LABEL)
        assert count_file(path).reader == f"NRRD, stream {name}"


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("plain.nrrd", "cut"),
        ("plain.nrrd", "longer"),
        ("packed.nrrd", "cut"),
        ("packed.nrrd", "longer"),
        ("packed.nrrd", "flipped"),
    ],
)
def test_damaged_voxels(tmp_path: Path, name: str, fault: str) -> None:
    assert_damage_is_refused(tmp_path / name, fault)


NAMES = "\n".join(slices(raw))
LIST = f"data file: LIST\n{NAMES}\n"
HALVES = {"h0": raw(VOXELS[:, :, :3]), "h1": raw(VOXELS[:, :, 3:])}


def packed(array: np.ndarray) -> bytes:
    return gzip.compress(raw(array))


@pytest.mark.parametrize(
    "files",
    [
        nrrd("raw", b"XXXX" + raw(VOXELS), extra="byte skip: 4\n"),
        nrrd("raw", raw(VOXELS), extra="byte skip: -1\n"),
        nrrd("raw", b"one\ntwo\nXX" + raw(VOXELS), extra="line skip: 2\nbyte skip: 2\n"),
        nrrd("gz", gzip.compress(b"XXXX" + raw(VOXELS)), extra="byte skip: 4\n"),
        nrrd("gzip", b"one\n" + packed(VOXELS), extra="line skip: 1\n"),
        nrrd("gzip", gzip.compress(raw(VOXELS)[:50]) + gzip.compress(raw(VOXELS)[50:])),
        nrrd("hex", raw(VOXELS).hex().encode()),
        nrrd("txt", b"17 23\n" + text(VOXELS), extra="line skip: 1\n"),
        nrrd("raw", files={"v.x": b"XXXX" + raw(VOXELS)}, extra="data file: v.x\nbyte skip: 4\n"),
        nrrd("raw", files=slices(raw), extra=LIST),
        nrrd("gzip", files=slices(packed), extra=LIST.replace("LIST", "LIST 2")),
        nrrd("ascii", files=slices(text), extra=LIST),
        nrrd("raw", files=HALVES, extra="data file: LIST 3\nh0\nh1\n"),
        nrrd("raw", files=slices(raw), extra="data file: s%d.raw 0 5 1\n"),
        nrrd("raw", files=slices(raw), extra="data file: s%d.raw 0 5 1 2\n"),
    ],
)
def test_every_form_is_read_as_itk_reads_it(tmp_path: Path, files: dict[str, bytes]) -> None:
    path = write(tmp_path, files)
    assert count_file(path).values == unique(VOXELS)
    assert np.array_equal(describe_label(path).load(), VOXELS)
    assert np.array_equal(itk.array_from_image(itk.imread(str(path))).T, VOXELS)
    check_scan(path)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (nrrd("raw", b"XXXX" + raw(VOXELS) + b"7" * 99, extra="byte skip: 4\n"), "found more bytes|found 1287 bytes"),
        (nrrd("raw", b"XXXX" + raw(VOXELS), extra="byte skip: -1\n"), "found more bytes|found 1192 bytes"),
        (nrrd("gzip", packed(VOXELS), extra="byte skip: -1\n"), "a byte skip of -1"),
        (nrrd("gzip", gzip.compress(raw(VOXELS) + b"77")), "found more bytes after the last voxel"),
        (nrrd("bzip2", bz2.compress(raw(VOXELS)) + b"77"), "followed by other bytes"),
        (nrrd("bzip2", bz2.compress(raw(VOXELS))[:-3]), "ended before the end-of-stream"),
        (nrrd("hex", raw(VOXELS).hex().encode()[:-2]), "it is truncated"),
        (nrrd("raw", raw(VOXELS), extra="line skip: 9999\n"), "fewer than 9999 lines"),
        (nrrd("lzma", raw(VOXELS)), "found the encoding 'lzma', expected one of raw, gzip"),
        (nrrd("raw", files=slices(raw), extra=LIST.replace("s5.raw\n", "")), "found 5 files in the header, expected 6"),
        (nrrd("raw", files=slices(raw), extra="data file: s%d.raw 0 4 1\n"), "found 5 files"),
        (nrrd("raw", files=slices(raw), extra="data file: s%d.raw 0 4\n"), "expected a pattern and its first"),
        (
            nrrd("raw", files=HALVES, extra="data file: LIST 3\nh0\nh1\nh1\nh1\n"),
            "found 4 files .* expected a divisor",
        ),
        (nrrd("raw", files=slices(lambda part: raw(part) + b"77"), extra=LIST), r"s0\.raw: found"),
    ],
)
def test_forms_that_promise_something_else_than_they_hold(
    tmp_path: Path, files: dict[str, bytes], message: str
) -> None:
    path = write(tmp_path, files)
    for look in (count_file, check_scan):
        with pytest.raises(ValueError, match=message) as raised:
            look(path)
        assert str(raised.value).startswith(str(tmp_path))


@pytest.mark.parametrize("axis", [0, 3])
@pytest.mark.parametrize("direction", ["none", "(nan,nan,nan)"])
def test_one_hot_channels_are_found_by_their_kind(tmp_path: Path, axis: int, direction: str) -> None:
    channels = np.stack([value == LABEL for value in range(4)], axis=axis).astype(np.uint8)
    directions, kinds = ["(1,0,0)", "(0,2,0)", "(0,0,3)"], ["domain"] * 3
    directions.insert(axis, direction)
    kinds.insert(axis, "list")
    head = (
        f"NRRD0005\ntype: uint8\ndimension: 4\nspace: LPS\nsizes: {' '.join(map(str, channels.shape))}\nencoding: gzip\n"
        f"space directions: {' '.join(directions)}\nkinds: {' '.join(kinds)}\n\n"
    )
    path = tmp_path / "a.nrrd"
    path.write_bytes(head.encode() + gzip.compress(channels.tobytes(order="F")))
    record = count_file(path, ids=[0, 1, 2, 3])
    assert record.values == unique(LABEL)
    assert record.voxel_volume == pytest.approx(6.0)
    with pytest.raises(ValueError, match=r"a\.nrrd: found 4 axes .*no ids are declared"):
        count_file(path)


def test_numbers_as_text_need_no_byte_order(tmp_path: Path) -> None:
    path = write(tmp_path, nrrd("ascii", text(VOXELS)))
    path.write_bytes(path.read_bytes().replace(b"endian: little\n", b""))
    assert count_file(path).values == unique(VOXELS)
