"""No label counts twice, however it is named a second time."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pytest
from dicom_files import write_series
from monai.data import DataLoader, Dataset
from monai.transforms import Compose, EnsureChannelFirstd, LoadImaged

from monai_margincal.statistics import count_labels

LOAD = Compose([LoadImaged("label"), EnsureChannelFirstd("label")])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in "ab":
        nib.save(nib.Nifti1Image(np.ones((4, 4, 2), np.uint8), np.eye(4)), tmp_path / f"{name}.nii.gz")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "c.nii.gz").symlink_to(tmp_path / "a.nii.gz")
    return tmp_path


def named_twice(folder: Path) -> dict[str, Any]:
    a, b = str(folder / "a.nii.gz"), str(folder / "b.nii.gz")
    around = f"{folder}/../{folder.name}/a.nii.gz"
    return {
        "paths": [a, b, a],
        "overlapping patterns": [f"{folder}/*.nii.gz", f"{folder}/a*"],
        "file and pattern": [a, f"{folder}/*.nii.gz"],
        "link": [a, f"{folder}/links/c.nii.gz"],
        "pattern over links": f"{folder}/**/*.nii.gz",
        "relative": [a, "a.nii.gz"],
        "list": [{"label": a}, {"label": b}, {"label": a}],
        "list, two ways": [{"label": a}, {"label": around}],
        "list, one as a list": [{"label": a}, {"label": [around]}],
        "list, same image": [{"label": a, "image": b}, {"label": around, "image": [b]}],
        "data set": Dataset([{"label": a}, {"label": Path(around)}], LOAD),
        "loader": DataLoader(Dataset([{"label": a}, {"label": b}, {"label": a}], LOAD)),
    }


@pytest.mark.parametrize("kind", named_twice(Path("/x")))
@pytest.mark.parametrize("transform", [None, LOAD], ids=["raw", "transformed"])
def test_is_refused_with_both_names(folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str, transform: Any) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(ValueError, match=r"found the label .* again .*expected every label once") as raised:
        count_labels(named_twice(folder)[kind], num_classes=2, transform=transform)
    first, second = re.findall(r"\S*nii\.gz", str(raised.value))[:2]
    assert os.path.realpath(first) == os.path.realpath(second) == str(folder / "a.nii.gz")


def test_patterns_are_named_with_the_file(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"a\.nii\.gz again \(named by '.*/\*\.nii\.gz' and named by '.*/a\*'\)"):
        count_labels([f"{folder}/*.nii.gz", f"{folder}/a*"], num_classes=2)


def test_both_files_of_a_pair(tmp_path: Path) -> None:
    nib.save(nib.Nifti1Pair(np.ones((4, 4, 2), np.uint8), np.eye(4)), tmp_path / "a.hdr")
    assert count_labels(tmp_path / "a.img").total == 32
    with pytest.raises(ValueError, match=r"a\.img: found the label .*a\.hdr again"):
        count_labels(f"{tmp_path}/*", num_classes=2)


def test_a_series_and_a_slice_of_it(tmp_path: Path) -> None:
    write_series(tmp_path / "series", np.ones((3, 4, 4), np.uint16))
    with pytest.raises(ValueError, match=r"series: found the label .* again|found the label .*series again"):
        count_labels([tmp_path / "series", *sorted((tmp_path / "series").iterdir())[:1]], num_classes=2)


def test_what_is_not_the_same_counts(folder: Path) -> None:
    """Another image, another slice, another name on the disk of a copy."""
    a = str(folder / "a.nii.gz")
    assert count_labels([{"label": a, "image": "t1"}, {"label": a, "image": "t2"}], num_classes=2).total == 64
    slices = [{"label": a, "slice": 0}, {"label": a, "slice": 1}]
    assert count_labels(slices, num_classes=2, transform=LOAD).total == 64
    (folder / "hard.nii.gz").hardlink_to(a)
    assert count_labels([a, folder / "hard.nii.gz"], num_classes=2).total == 64
    label = np.ones((1, 2, 2), np.uint8)
    assert count_labels([{"label": label}, {"label": label}], num_classes=2).total == 8
