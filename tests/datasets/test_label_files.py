"""Which label files a folder stands for: those that say so, never a guess."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from monai_margincal.cli import main
from monai_margincal.datasets import folder_datalist, label_files
from monai_margincal.samples import sample_dir

LUNG = Path(sample_dir("lung_ct"))


def touch(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["b.nii.gz", "a.nii.gz", ".c.nii.gz", "notes.txt"], ["a.nii.gz", "b.nii.gz"]),
        (["a.nii.gz", "preview.png"], ["a.nii.gz"]),
        (["a.png", "b.PNG"], ["a.png", "b.PNG"]),
        (["images/a.nii.gz", "labels/a.nii.gz", "dataset.json"], ["labels/a.nii.gz"]),
        (["imagesTr/a.nii", "labelsTr/a.nii", "labelsTs/b.nii"], ["labelsTr/a.nii", "labelsTs/b.nii"]),
        (["img/a.png", "Masks_train/a.png"], ["Masks_train/a.png"]),
        (["slice1", "slice2"], ["."]),
        (["p1/1.dcm", "p2/1.dcm"], ["p1", "p2"]),
    ],
)
def test_found(tmp_path: Path, names: list[str], expected: list[str]) -> None:
    touch(tmp_path, *names)
    assert [path.relative_to(tmp_path).as_posix() for path in label_files(tmp_path)] == expected


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "found an empty folder, expected label files"),
        (["a/ct.nii.gz", "b/ct.nii.gz"], "found the folders 'a', 'b', expected one named after labels"),
        (
            ["labelled_ct/a.nii.gz", "x/b.nii.gz"],
            "found the folders 'labelled_ct', 'x', expected one named after labels",
        ),
    ],
)
def test_refused(tmp_path: Path, names: list[str], message: str) -> None:
    touch(tmp_path, *names)
    with pytest.raises(ValueError, match=message):
        label_files(tmp_path)


def test_counting_a_data_set_counts_its_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(LUNG, tmp_path / "data")
    assert main(["count", str(tmp_path / "data"), "--num-classes", "2", "--json"]) == 0
    found = capsys.readouterr()
    assert [row["voxels"] for row in json.loads(found.out)["classes"]] == [1743991, 25481]
    assert f"label files: 2 in {tmp_path / 'data' / 'labels'}" in found.err


def test_unpaired_files_are_left_out_by_name_when_asked(tmp_path: Path) -> None:
    touch(tmp_path, *(f"images/{k}.nii" for k in range(14)), "labels/0.nii", "labels/x.nii")
    with pytest.raises(
        ValueError, match=r"do not pair up: no label .* for the images images/1.nii, .* and 3 more; no image"
    ):
        folder_datalist(tmp_path)
    with pytest.warns(
        UserWarning, match=r"left out of .*images/9.nii; no image .* for the labels labels/x.nii"
    ) as caught:
        found = folder_datalist(tmp_path, skip_unpaired=True)
    assert [item["case"] for item in found] == ["0"]
    assert all(f"images/{k}.nii" in str(caught[0].message) for k in range(1, 14))


def test_no_pair_at_all_is_an_error_all_the_same(tmp_path: Path) -> None:
    touch(tmp_path, "images/a.nii", "labels/b.nii")
    with pytest.raises(ValueError, match="do not pair up"):
        folder_datalist(tmp_path, skip_unpaired=True)


def test_the_verb_names_what_it_leaves_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    touch(tmp_path, "images/a.nii", "images/b.nii", "images/c.nii", "labels/a.nii", "labels/b.nii")
    words = ["datalist", "folder", str(tmp_path), "--validation", "0", "--test", "0", "-o", str(tmp_path / "list.json")]
    assert main(words) == 1
    assert "do not pair up" in capsys.readouterr().err
    with pytest.warns(UserWarning, match=r"for the images images/c\.nii"):
        assert main([*words, "--skip-unpaired", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sections"] == {"training": {"cases": 2, "groups": None, "folds": None}}
