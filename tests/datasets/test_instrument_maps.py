"""Class maps: masks with known pixels, overlaps, the border of a recording, and what is on the disk already."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from monai_margincal.datasets.instrument_maps import class_map, instrument_classes, write_class_map


@pytest.fixture
def files(tmp_path):
    """A frame with two instruments that overlap in one pixel."""
    frame = tmp_path / "left_frames" / "frame000.png"
    wide = tmp_path / "Left_Prograsp_Forceps_labels" / "frame000.png"
    small = tmp_path / "Other_labels" / "frame000.png"
    for path in (frame, wide, small):
        path.parent.mkdir()
    Image.new("RGB", (4, 2)).save(frame)
    Image.fromarray(np.array([[10, 10, 20, 30], [0, 0, 0, 0]], np.uint8)).save(wide)
    Image.fromarray(np.array([[0, 0, 40, 0], [0, 0, 40, 0]], np.uint8)).save(small)
    return tmp_path / "maps" / "frame000.png", frame, {wide: 2, small: 7}


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("binary", [[1, 1, 1, 1], [0, 0, 1, 0]]),
        ("parts", [[1, 1, 4, 3], [0, 0, 4, 0]]),
        ("types", [[2, 2, 7, 2], [0, 0, 7, 0]]),
    ],
)
def test_each_task_from_the_same_masks(files, task, expected):
    path, frame, masks = files
    assert write_class_map(path, frame, masks, task)
    with Image.open(path) as picture:
        assert picture.mode == "L"
        assert np.asarray(picture).tolist() == expected


@given(st.lists(st.lists(st.sampled_from([0, 1, 2, 3, 4]), min_size=6, max_size=6), min_size=1, max_size=4))
def test_every_pixel_is_that_of_the_smallest_instrument_there(rows):
    instruments = [np.array([row], np.uint8) for row in rows]
    merged = class_map(instruments)[0]
    for pixel in range(6):
        there = [row for row in rows if row[pixel] > 0]
        smallest = min((sum(value > 0 for value in row) for row in there), default=0)
        classes = {row[pixel] for row in there if sum(value > 0 for value in row) == smallest} or {0}
        assert merged[pixel] in classes


def test_the_border_of_a_recording_is_void():
    merged = class_map([np.full((1080, 1920), 3, np.uint8)])
    assert (merged[28:1052, 320:1600] == 3).all()
    assert np.count_nonzero(merged == 255) == 1080 * 1920 - 1024 * 1280
    assert (class_map([np.full((1024, 1280), 3, np.uint8)]) == 3).all()


def test_a_mask_of_three_equal_channels_is_grey(files):
    path, frame, masks = files
    wide = next(iter(masks))
    with Image.open(wide) as mask:
        mask.convert("RGB").save(wide)
    write_class_map(path, frame, masks, "types")
    with Image.open(path) as picture:
        assert np.asarray(picture).tolist() == [[2, 2, 7, 2], [0, 0, 7, 0]]


def test_a_map_is_made_once(files):
    path, frame, masks = files
    assert write_class_map(path, frame, masks, "parts")
    written = path.stat()
    assert not write_class_map(path, frame, masks, "parts")
    assert path.stat() == written


def test_what_is_not_the_map_of_these_masks_stays(files):
    path, frame, masks = files
    write_class_map(path, frame, masks, "parts")
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match=r"frame000.png exists and is not overwritten: found a file that is not"):
        write_class_map(path, frame, masks, "types")
    next(iter(masks)).touch()
    with pytest.raises(FileExistsError, match="is not overwritten"):
        write_class_map(path, frame, masks, "parts")
    assert path.read_bytes() == before
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="is not overwritten"):
        write_class_map(path, frame, masks, "parts")
    assert path.read_text() == "mine"


def test_unusable_masks_are_named(files):
    path, frame, masks = files
    wide, small = masks
    Image.fromarray(np.full((2, 4), 255, np.uint8)).save(small)
    with pytest.raises(
        ValueError, match=r"Other_labels/frame000.png: .*found the values \[255\], expected 0 and 10, 20"
    ):
        write_class_map(path, frame, masks, "parts")
    Image.fromarray(np.zeros((2, 5), np.uint8)).save(small)
    with pytest.raises(
        ValueError, match=r"Other_labels/frame000.png: found 5 x 2 pixels, expected 4 x 2 as in .*left_fr"
    ):
        write_class_map(path, frame, masks, "parts")
    Image.fromarray(np.arange(24, dtype=np.uint8).reshape(2, 4, 3)).save(small)
    with pytest.raises(ValueError, match=r"Other_labels/frame000.png: found values of the shape \(2, 4, 3\)"):
        write_class_map(path, frame, masks, "parts")
    wide.write_bytes(wide.read_bytes()[:40])
    with pytest.raises(ValueError, match=r"Left_Prograsp_Forceps_labels/frame000.png: cannot be read, expected a mask"):
        write_class_map(path, frame, masks, "parts")
    frame.write_bytes(b"no picture")
    with pytest.raises(ValueError, match=r"left_frames/frame000.png: cannot be read, expected a picture"):
        write_class_map(path, frame, masks, "parts")
    assert not path.exists()


def test_instruments_must_have_one_shape():
    with pytest.raises(ValueError, match=r"found the shapes \[\(1, 2\), \(2, 1\)\], expected one shape"):
        class_map([np.zeros((1, 2), np.uint8), np.zeros((2, 1), np.uint8)])
    with pytest.raises(ValueError, match=r"found the shapes \[\], expected one shape"):
        class_map([])


def test_any_value_is_the_instrument_unless_its_parts_are_asked_for():
    mask = np.array([[0, 255, 1]], np.uint8)
    assert instrument_classes(mask, 5, "types").tolist() == [[0, 5, 5]]
    assert instrument_classes(mask, 5, "binary").tolist() == [[0, 1, 1]]
