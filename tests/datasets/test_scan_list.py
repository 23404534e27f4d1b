"""Files, folders of scans and folders of slices, as people name them on a command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from monai_margincal.datasets import scan_list


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    for name in (
        "volumes/b.nii.gz",
        "volumes/a.NRRD",
        "volumes/preview.png",
        "volumes/notes.txt",
        "volumes/.hidden.nii.gz",
        "series/00001.dcm",
        "series/00002.dcm",
        "nameless/IM0001",
        "series with preview/IM0001",
        "series with preview/preview.png",
        "frames/frame001.png",
        "frames/frame000.JPG",
        "patients/p2/ct/1.dcm",
        "patients/p1/ct.nii",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["volumes"], ["volumes/a.NRRD", "volumes/b.nii.gz"]),
        (["volumes/b.nii.gz"], ["volumes/b.nii.gz"]),
        (["volumes/preview.png"], ["volumes/preview.png"]),  # somebody who says so means it
        (["series"], ["series"]),
        (["nameless"], ["nameless"]),
        (["series with preview"], ["series with preview"]),
        (["frames"], ["frames/frame000.JPG", "frames/frame001.png"]),
        (["patients"], ["patients/p1/ct.nii", "patients/p2/ct"]),
        (["series", "volumes", "volumes/b.nii.gz"], ["series", "volumes/a.NRRD", "volumes/b.nii.gz"]),
    ],
)
def test_what_paths_stand_for(disk: Path, paths: list[str], expected: list[str]) -> None:
    found = scan_list([disk / path for path in paths])
    assert [Path(item["image"]).relative_to(disk).as_posix() for item in found] == expected


def test_relative_paths_become_absolute(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(disk)
    assert scan_list(["series"]) == [{"image": str(disk / "series")}]


def test_nothing_is_an_error_that_names_the_path(disk: Path) -> None:
    with pytest.raises(ValueError, match="scans: found none, expected files or folders"):
        scan_list([])
    with pytest.raises(FileNotFoundError, match=r"missing\.nii: found no such file or folder, expected a scan"):
        scan_list([disk / "missing.nii"])
    with pytest.raises(ValueError, match="empty: found an empty folder, expected scans"):
        scan_list([disk / "empty"])
