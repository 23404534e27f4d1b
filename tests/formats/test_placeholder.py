"""Files that stand for others which are not here are called what they are, as labels and as scans, alone or beside a header."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from dicom_files import write_series
from mutants import VOXELS, metaimage, raw, slices, write

from monai_margincal.counting.label_file import count_file
from monai_margincal.datasets import ScanDataset
from monai_margincal.formats import check_scan

LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
POINTERS = {
    LFS + "size 12345\n": "found a git-lfs pointer, expected the file itself: `git lfs pull` fetches it",
    "/annex/objects/MD5E-s123--d41d8cd98f00b204e9800998ecf8427e.nii.gz\n": "found a git-annex pointer, .*`git annex get`",
    "../.git/annex/objects/Xx/9k/MD5E-s123--d41d8cd9/MD5E-s123--d41d8cd9\n": "found a git-annex pointer",
    "": "found an empty file, expected an image",
}


@pytest.mark.parametrize("look", [count_file, check_scan])
@pytest.mark.parametrize(
    "name", ["a.nii.gz", "a.nii", "a.nrrd", "a.nhdr", "a.mha", "a.mhd", "a.png", "a.dcm", "A.NII.GZ"]
)
@pytest.mark.parametrize("content", POINTERS)
def test_a_pointer(tmp_path: Path, look: Callable, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(ValueError, match=POINTERS[content]) as raised:
        look(path)
    assert str(raised.value).startswith(f"{path}: found ")


@pytest.mark.parametrize("look", [count_file, check_scan])
@pytest.mark.parametrize("content", POINTERS)
def test_a_pointer_for_the_voxels_of_a_header(tmp_path: Path, look: Callable, content: str) -> None:
    files = metaimage("s%d.raw 0 5 1", slices(raw), extra="BinaryData = True\n")
    path = write(tmp_path, {**files, "s3.raw": content.encode()})
    with pytest.raises(ValueError, match=POINTERS[content]) as raised:
        look(path)
    assert str(tmp_path / "s3.raw") in str(raised.value)
    assert str(raised.value).startswith(str(tmp_path))


@pytest.mark.parametrize("look", [count_file, check_scan])
def test_a_pointer_among_the_slices_of_a_series(tmp_path: Path, look: Callable) -> None:
    """Without an ending it would be left out, as every file that is not DICOM."""
    folder = write_series(tmp_path / "ct", VOXELS)
    (folder / "IM2").write_text(next(iter(POINTERS)))
    with pytest.raises(ValueError, match=r"IM2: found a git-lfs pointer"):
        look(folder)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("../.git/annex/objects/9k/MD5E-s1--d4", "found a link of git-annex without its content, .*`git annex get`"),
        ("/nowhere/a.nii.gz", "found a link to /nowhere/a.nii.gz, which does not exist"),
        (None, "no such file"),
    ],
)
def test_a_link_without_its_file(tmp_path: Path, target: str | None, message: str) -> None:
    path = tmp_path / "a.nii.gz"
    if target is not None:
        path.symlink_to(target)
    for look in (count_file, check_scan, lambda path: ScanDataset([{"image": str(path)}], None)):
        with pytest.raises(FileNotFoundError, match=rf"a\.nii\.gz: {message}"):
            look(path)
