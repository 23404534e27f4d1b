"""EndoVis 2017 on its own layout in small: lists, splits, maps, and what is missing."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from monai_margincal.cli import main
from monai_margincal.datasets import ENDOVIS2017_CLASSES, endovis2017_datalist, read_datalist
from monai_margincal.datasets.endovis2017 import ENDOVIS2017_FOLDS, instrument_type
from tests.instrument_frames import INSTRUMENTS, name_of, write_endovis2017


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return write_endovis2017(tmp_path_factory.mktemp("endovis"))


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
    """One folder for all tests: the maps are made by the first and found by the others."""
    return tmp_path_factory.mktemp("maps")


def test_the_papers_split(root, maps):
    sections = endovis2017_datalist(root, "parts", maps / "parts")
    assert {name: len(items) for name, items in sections.items()} == {"training": 1200, "validation": 200, "test": 400}
    for name, frames in (("training", (0, 149)), ("validation", (150, 174)), ("test", (175, 224))):
        numbers = [int(Path(item["image"]).stem[-3:]) for item in sections[name]]
        assert (min(numbers), max(numbers)) == frames
    assert sections["training"][0] == {
        "image": str(root / "instrument_dataset_1" / "left_frames" / "frame000.png"),
        "label": str(maps / "parts" / "instrument_dataset_1" / "frame000.png"),
        "case": "1_frame000",
        "sequence": "instrument_dataset_1",
    }
    values = {value for item in sections["test"] for value in np.unique(np.asarray(Image.open(item["label"])))}
    assert values == set(range(5))


def test_maps_are_those_of_the_masks(root, maps):
    """Every pixel that one mask alone covers has that instrument's class, and no pixel outside of all masks has any."""
    sections = endovis2017_datalist(root, "types", maps / "types")
    for item in (*sections["validation"][::40], *sections["training"][:8]):
        number = int(item["sequence"][-1])
        names = INSTRUMENTS[number]
        truth = root / item["sequence"] / "ground_truth"
        masks = np.stack([np.asarray(Image.open(truth / name / Path(item["image"]).name)) > 0 for name in names])
        merged = np.asarray(Image.open(item["label"]))
        kinds = np.array([instrument_type(name) for name in names])
        assert ((merged > 0) == masks.any(0)).all()
        alone = masks.sum(0) == 1
        assert (merged[alone] == kinds[masks.argmax(0)][alone]).all()


@pytest.mark.parametrize(("split", "held_out", "sequences"), [("sequence", 5, {5}), ("fold", 3, {4, 8})])
def test_whole_sequences_are_held_out(root, maps, split, held_out, sequences):
    sections = endovis2017_datalist(root, "parts", maps / "parts", split, held_out)
    assert set(sections) == {"training", "validation"}
    for name, expected in (("validation", sequences), ("training", set(INSTRUMENTS) - sequences)):
        assert {item["group"] for item in sections[name]} == {f"instrument_dataset_{number}" for number in expected}
    assert sum(map(len, sections.values())) == 1800


def test_the_folds_hold_every_sequence_out_once():
    assert sorted(number for fold in ENDOVIS2017_FOLDS.values() for number in fold) == list(range(1, 9))


def test_the_folders_as_they_are_distributed(root, maps, tmp_path):
    """In two parts, next to the frames of the test, which have no ground truth."""
    for number in INSTRUMENTS:
        part = tmp_path / ("instrument_1_4_training" if number <= 4 else "instrument_5_8_training")
        part.mkdir(exist_ok=True)
        (part / f"instrument_dataset_{number}").symlink_to(root / f"instrument_dataset_{number}")
    (tmp_path / "instrument_1_4_testing" / "instrument_dataset_1" / "left_frames").mkdir(parents=True)
    assert len(endovis2017_datalist(tmp_path, "parts", maps / "parts")["training"]) == 1200
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "instrument_dataset_3").symlink_to(root / "instrument_dataset_3")
    with pytest.raises(ValueError, match="found instrument_dataset_3 in 2 places"):
        endovis2017_datalist(tmp_path, "parts", maps / "parts")


def test_every_missing_file_is_named(tmp_path):
    root = write_endovis2017(tmp_path, 8, 8, sequences=(3, 7))
    with pytest.raises(FileNotFoundError, match=r"no folder with a ground_truth for instrument_dataset_1, .*_2, .*_8"):
        endovis2017_datalist(root, "binary", tmp_path / "maps")
    for number in set(INSTRUMENTS) - {3, 7}:
        shutil.copytree(root / "instrument_dataset_7", root / f"instrument_dataset_{number}", copy_function=_link)
    for frame in (3, 100, 101, 102, 224):
        (root / "instrument_dataset_3" / "left_frames" / name_of(frame)).unlink()
    (root / "instrument_dataset_7" / "ground_truth" / "Right_Vessel_Sealer" / name_of(9)).unlink()
    with pytest.raises(FileNotFoundError) as error:
        endovis2017_datalist(root, "binary", tmp_path / "maps")
    message = str(error.value)
    assert f"2 folders lack frames, expected {name_of(0)} ... 224" in message
    assert f"{root}/instrument_dataset_3/left_frames: 003, 100-102, 224" in message
    assert f"{root}/instrument_dataset_7/ground_truth/Right_Vessel_Sealer: 009" in message
    assert not (tmp_path / "maps").exists()
    shutil.rmtree(root / "instrument_dataset_3" / "left_frames")
    with pytest.raises(FileNotFoundError, match=r"instrument_dataset_3/left_frames: 000-224; "):
        endovis2017_datalist(root, "binary", tmp_path / "maps")


def _link(source, target):
    Path(target).hardlink_to(source)


def test_an_unknown_instrument_is_named(root, maps, tmp_path):
    shutil.copytree(root, tmp_path / "data", copy_function=_link)
    (tmp_path / "data" / "instrument_dataset_2" / "ground_truth" / "binary_labels").mkdir()
    with pytest.raises(ValueError, match=r"instrument_dataset_2/ground_truth/binary_labels: found no known instrument"):
        endovis2017_datalist(tmp_path / "data", "parts", maps / "parts")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "part"}, r"task: found 'part', expected one of \['binary', 'parts', 'types'\]"),
        ({"split": "paper"}, r"split: found 'paper', expected one of \['frames', 'sequence', 'fold'\]"),
        ({"split": "fold", "held_out": 0}, r"split 'fold': found 0, expected one of \[1, 2, 3, 4\]"),
        ({"split": "sequence"}, r"split 'sequence': found None, expected one of \[1, 2, 3, 4, 5, 6, 7, 8\]"),
        ({"held_out": 1}, r"split 'frames': found 1, expected one of \[None\]"),
    ],
)
def test_unknown_choices_are_refused(root, maps, options, message):
    with pytest.raises(ValueError, match=message):
        endovis2017_datalist(root, **{"task": "parts", "maps": maps / "parts", **options})


def test_every_distributed_folder_has_a_kind():
    kinds = {instrument_type(name) for names in INSTRUMENTS.values() for name in names}
    assert kinds == set(range(1, len(ENDOVIS2017_CLASSES["types"])))


def test_from_the_command_line(root, tmp_path, capsys):
    command = ["datalist", "endovis2017", str(root), "--output", str(tmp_path / "list.json")]
    assert main(command) == 1
    assert "--task: found none, expected binary, parts or types" in capsys.readouterr().err
    assert main([*command, "--task", "binary"]) == 0
    assert "1200 training, 200 validation, 400 test" in capsys.readouterr().out
    sections = read_datalist(tmp_path / "list.json", ["training", "validation", "test"])
    assert sections["test"][0]["label"] == str(tmp_path / "binary_maps" / "instrument_dataset_1" / "frame175.png")
    assert sections["test"][0]["sequence"] == "instrument_dataset_1"
