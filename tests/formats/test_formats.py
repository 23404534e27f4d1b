"""The collection of formats: endings, readers and the page about them follow from one record per format."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk

import monai_margincal
from monai_margincal.formats import FORMATS, IMAGE_SUFFIXES, PICTURE_SUFFIXES, SUFFIXES, companions_of, describe_label

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"


def python(code: str, path: Path, *arguments: object) -> str:
    """What a fresh interpreter prints that finds the package under ``path``."""
    words = [sys.executable, "-c", code, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(path)}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=path, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_ending_belongs_to_one_format() -> None:
    endings = Counter(suffix for format_ in FORMATS for suffix in format_.suffixes)
    assert [suffix for suffix, number in endings.items() if number > 1] == []
    assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in endings)


def test_what_is_a_label_an_image_a_picture() -> None:
    assert set(SUFFIXES) - set(IMAGE_SUFFIXES) == {".hdr", ".img", ".hdr.gz", ".img.gz"}
    assert set(IMAGE_SUFFIXES) - set(SUFFIXES) == {".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".npy", ".npz"}
    assert set(PICTURE_SUFFIXES) == {".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff"}


def test_the_page_says_which_reader_takes_which_file() -> None:
    table = PAGE.read_text(encoding="utf-8").split("## Which reader takes which file")[1].split("\n## ")[0]
    found = [line for line in table.splitlines() if line.startswith("|")][2:]
    expected = [
        f"| {files} | {' '.join(f'`{suffix}`' for suffix in format_.suffixes)} | {reader} |"
        for format_ in FORMATS
        for files, reader in format_.readers
    ]
    assert found == expected


def test_an_image_format_is_no_label(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"\xff\xd8\xff" * 100)
    with pytest.raises(
        ValueError, match=r"a\.jpg: found the file name ending '\.jpg', expected one of \.dcm, .* or DICOM"
    ):
        describe_label(tmp_path / "a.jpg")


def test_the_files_that_belong_together(tmp_path: Path) -> None:
    image = sitk.GetImageFromArray(np.zeros((4, 4, 4), np.uint8))
    for name in ("a.mhd", "a.mha", "b.nhdr", "c.hdr"):
        sitk.WriteImage(image, str(tmp_path / name))
    together = {
        "a.mhd": ["a.mhd", "a.raw"],
        "a.mha": ["a.mha"],
        "b.nhdr": ["b.nhdr", "b.raw"],
        "c.hdr": ["c.hdr", "c.img"],
        "c.img": ["c.hdr", "c.img"],
    }
    for name, names in together.items():
        assert companions_of(tmp_path / name) == [tmp_path / part for part in names]
    (tmp_path / "notes").write_text("of no format")
    assert companions_of(tmp_path / "notes") == [tmp_path / "notes"]
    assert companions_of(tmp_path) == sorted(tmp_path.iterdir())
    header = (tmp_path / "a.mhd").read_text()
    (tmp_path / "a.mhd").write_text(header.replace("a.raw", "LIST\na.raw\nb.raw\na.raw\nc"))
    assert companions_of(tmp_path / "a.mhd") == [tmp_path / name for name in ("a.mhd", "a.raw", "b.raw", "a.raw", "c")]


def test_counting_imports_no_reader_before_a_file_needs_it() -> None:
    libraries = "'torch', 'monai', 'nibabel', 'pydicom', 'SimpleITK', 'PIL'"
    code = f"import sys, monai_margincal.counting; print([name for name in ({libraries}) if name in sys.modules])"
    assert python(code, Path(monai_margincal.__file__).parents[1]) == "[]\n"


#: Labels as text: the sizes in the first line, then one value per voxel.
NEW_FORMAT = """
from pathlib import Path

import numpy as np

from .format import Format
from .label_image import LabelImage


def describe_text(path: Path) -> LabelImage:
    shape = tuple(int(size) for size in path.read_text().splitlines()[0].split())
    return LabelImage(
        path, format="text", shape=shape, dtype="int64", affine=None, body=None, reader="NumPy",
        load=lambda: np.loadtxt(path, dtype=np.int64, skiprows=1).reshape(shape),
    )


FORMAT = Format((".voxels",), describe_text)
"""


def test_a_new_format_takes_its_module_alone(tmp_path: Path) -> None:
    source = Path(monai_margincal.__file__).parent
    copy = tmp_path / source.name
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__", "samples"))
    (copy / "formats" / "text.py").write_text(NEW_FORMAT)
    (tmp_path / "case_1.voxels").write_text("3 2\n0 1 1\n2 0 1\n")
    code = """
import sys
from pathlib import Path
from monai_margincal.counting import count_file
from monai_margincal.formats import IMAGE_SUFFIXES, SUFFIXES
record = count_file(Path(sys.argv[1]))
print(record.name, record.values, record.reader, ".voxels" in SUFFIXES, ".voxels" in IMAGE_SUFFIXES)
"""
    printed = python(code, tmp_path, tmp_path / "case_1.voxels")
    assert printed == "case_1 {0: 2, 1: 3, 2: 1} text, NumPy True True\n"
