"""`margincal compare --init`: a study about the user's folder, which runs as it stands."""

from __future__ import annotations

from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from PIL import Image

from monai_margincal.cli import main
from monai_margincal.experiments import Study


def volumes(root: Path, cases: int, ids: tuple[int, ...] = (0, 1), *, labels: int | None = None) -> Path:
    random = np.random.default_rng(0)
    for kind, number in (("images", cases), ("labels", cases if labels is None else labels)):
        (root / kind).mkdir(parents=True)
        for case in range(number):
            voxels = random.choice(ids, (20, 40, 3)).astype(np.uint8)
            nib.save(nib.Nifti1Image(voxels, np.eye(4)), root / kind / f"case_{case}.nii.gz")
    return root


def test_it_runs_as_it_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    volumes(tmp_path, 4)
    file = tmp_path / "study.yaml"
    assert main(["compare", "--init", str(file)]) == 0
    assert f"written: {file}" in capsys.readouterr().out
    quick = [
        "--set",
        "tasks::own::pretraining_steps=1",
        "--set",
        "tasks::own::steps=1",
        "--no-report",
        "--device",
        "cpu",
    ]
    assert main(["compare", str(file), "--output", str(tmp_path / "out"), *quick]) == 0
    assert "cells finished: 3 of 3 (3 by this process)" in capsys.readouterr().out
    assert main(["compare", "--init", str(file)]) == 1
    assert "exists and is not overwritten" in capsys.readouterr().err


def test_it_says_what_the_files_hold(tmp_path: Path) -> None:
    volumes(tmp_path / "data", 8, (0, 3, 255))
    file = tmp_path / "study.yaml"
    assert main(["compare", "--init", str(file), "--data", str(tmp_path / "data")]) == 0
    task = Study.from_file(file).tasks["own"]
    assert task["class_names"] == ["background", "class 3", "class 255"]
    assert task["network"]["out_channels"] == 3
    assert (task["test"], task["validation"], task["slice_axis"], task["sample_size"]) == (2, 1, 2, [32, 48])
    mapped = next(step for step in task["transform"] if step["_target_"] == "MapLabelValued")
    assert (mapped["orig_labels"], mapped["target_labels"]) == ([0, 3, 255], [0, 1, 2])
    assert "@config_dir + '/data'" in file.read_text()
    assert 30 <= len(file.read_text().splitlines()) <= 50
    assert len(Study.from_file(file).cells()) == 3


def test_pictures(tmp_path: Path) -> None:
    for kind, mode in (("images", "RGB"), ("labels", "L")):
        (tmp_path / kind).mkdir()
        for case in range(3):
            pixels = np.zeros((20, 40, 3) if mode == "RGB" else (20, 40), np.uint8)
            pixels[:5] = 1
            Image.fromarray(pixels, mode).save(tmp_path / kind / f"{case}.png")
    assert main(["compare", "--init", str(tmp_path / "study.yaml")]) == 0
    task = Study.from_file(tmp_path / "study.yaml").tasks["own"]
    assert task["network"]["in_channels"] == 3
    assert "slice_axis" not in task
    assert "Hounsfield" not in (tmp_path / "study.yaml").read_text()


def test_a_label_without_an_image_is_left_out_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    volumes(tmp_path, 3, labels=4)
    with pytest.warns(
        UserWarning, match="left out of .*: no image of the pattern .* for the labels labels/case_3.nii.gz"
    ):
        assert main(["compare", "--init", str(tmp_path / "study.yaml")]) == 0
    assert "skip_unpaired: true" in (tmp_path / "study.yaml").read_text()


@pytest.mark.parametrize(
    ("cases", "ids", "message"),
    [
        (2, (0, 1), "found 2 cases, expected 3 or more: one to train on, one to validate, one to test"),
        (3, (0,), "found the label values [0], expected two or more classes"),
    ],
)
def test_too_little(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cases: int, ids: tuple[int, ...], message: str
) -> None:
    volumes(tmp_path, cases, ids)
    assert main(["compare", "--init", str(tmp_path / "study.yaml")]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "study.yaml").exists()


@pytest.mark.parametrize("words", [[], ["a.yaml", "--init", "b.yaml"]])
def test_a_study_or_a_new_one(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["compare", *words])
    assert "of FILE and --init, expected one" in capsys.readouterr().err
