"""Folders of frames: real ones, and names that tell or do not tell a sequence."""

from __future__ import annotations

import json

import pytest
from PIL import Image

from monai_margincal.cli import main
from monai_margincal.datasets import frames_datalist, split_datalist
from monai_margincal.statistics import count_labels
from tests.shared import SHARED, needs_shared


@pytest.fixture
def root(tmp_path):
    for sequence in "abcde":
        for frame in range(3):
            for folder, mode in (("images", "RGB"), ("labels", "L")):
                (tmp_path / folder).mkdir(exist_ok=True)
                Image.new(mode, (6, 4)).save(tmp_path / folder / f"{sequence}_{frame:03d}.png")
    return tmp_path


@needs_shared
def test_the_sequences_of_a_real_film():
    items = frames_datalist(SHARED / "data" / "vocalfolds")
    assert len(items) == 191
    assert {item["sequence"] for item in items} == {f"patient{1 + (n > 4)}_seq{n}" for n in range(1, 9)}
    parts = split_datalist(items, {"training": None, "validation": 0.25, "test": 0.25})
    groups = [{item["group"] for item in part} for part in parts.values()]
    assert all(groups)
    assert sum(map(len, groups)) == len(set.union(*groups)) == 8


@needs_shared
def test_the_pixels_of_a_real_film_are_counted_without_void():
    counts = count_labels(
        frames_datalist(SHARED / "data" / "vocalfolds"), num_classes=7, ignore_index=0, progress=False
    )
    # those of the data's own description; 191 frames of 256 x 256
    assert counts.counts.tolist() == [0, 4760654, 3169202, 1282940, 49415, 2163558, 638110]
    assert counts.ignored == 453497 == 191 * 256 * 256 - counts.total


def test_a_list_by_sequence(root, capsys):
    assert main(["datalist", "frames", str(root), "--output", str(root / "list.json")]) == 0
    assert "9 training (3 groups), 3 validation (1 group), 3 test (1 group)" in capsys.readouterr().out
    sections = json.loads((root / "list.json").read_text())
    sides = [{item["group"] for item in items} for items in sections.values()]
    assert [len(groups) for groups in sides] == [3, 1, 1]
    assert len(set.union(*sides)) == 5
    first = sections["validation"][0]
    assert first["image"] == f"images/{first['case']}.png"
    assert first["label"] == f"labels/{first['case']}.png"


def test_a_pattern_says_where_the_sequence_stands(root):
    items = frames_datalist(root, group_pattern="{group}_*")
    assert [item["group"] for item in items[:4]] == ["a", "a", "a", "b"]
    items = frames_datalist(root, group_pattern="*_{group}")
    assert {item["group"] for item in items} == {"000", "001", "002"}
    with pytest.raises(
        ValueError, match=r"found no group in the case names 'a_000', .* expected names like 'x\{group\}'"
    ):
        frames_datalist(root, group_pattern="x{group}")
    with pytest.raises(ValueError, match=r"group_pattern: found '\*_', expected \{group\} in it once"):
        frames_datalist(root, group_pattern="*_")


def test_what_is_no_frame_is_named(root):
    (root / "images" / "a_000.png").write_bytes(b"\x89PNG broken")
    with pytest.raises(ValueError, match=r"images/a_000.png: cannot be read, expected a picture"):
        frames_datalist(root)
    Image.new("RGB", (4, 6)).save(root / "images" / "a_000.png")
    with pytest.raises(
        ValueError, match=r"labels/a_000.png: found 6 x 4 pixels, expected 4 x 6 as in .*images/a_000.png"
    ):
        frames_datalist(root)
    (root / "images" / "a_000.png").unlink()
    (root / "images" / "a_000.nii.gz").touch()
    with pytest.raises(ValueError, match=r"images/a_000.nii.gz: found no picture, expected one of .jpg"):
        frames_datalist(root)
    Image.new("RGB", (6, 4)).save(root / "images" / "still.png")
    with pytest.raises(ValueError, match=r"still.png: found a name that tells no sequence, expected a number in it"):
        frames_datalist(root, label=None, image="images/{case}.png")


def test_one_sequence_cannot_be_divided(root):
    items = [item for item in frames_datalist(root) if item["group"] == "a"]
    with pytest.raises(ValueError, match=r"no case is left for part 'training'"):
        split_datalist(items, {"training": None, "validation": 0.2})
