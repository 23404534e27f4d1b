"""UESTC-COVID-19 on a synthetic tree of its layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from monai_margincal.datasets import UESTC_COVID19_SPLITS, uestc_covid19_datalist


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("uestc")
    for part, cases in ((1, 70), (2, 50)):
        for kind in ("image", "label"):
            folder = root / f"part{part}" / kind
            folder.mkdir(parents=True)
            for number in range(1, cases + 1):
                (folder / f"case_{number}.nii.gz").touch()
    return root


@pytest.mark.parametrize(
    ("part", "section", "first", "last"),
    [
        (1, "training", 1, 40),
        (1, "validation", 41, 55),
        (1, "test", 56, 70),
        (2, "training", 1, 30),
        (2, "validation", 31, 40),
        (2, "test", 41, 50),
    ],
)
def test_the_papers_sections(root, part, section, first, last):
    data = uestc_covid19_datalist(root, part, section)
    assert [item["case"] for item in data] == [f"part{part}_case_{number}" for number in range(first, last + 1)]
    for item, number in zip(data, range(first, last + 1), strict=True):
        assert Path(item["image"]) == root / f"part{part}" / "image" / f"case_{number}.nii.gz"
        assert Path(item["label"]) == root / f"part{part}" / "label" / f"case_{number}.nii.gz"


@pytest.mark.parametrize(("part", "cases"), [(1, 70), (2, 50)])
def test_the_sections_cover_every_case_once(part, cases):
    numbers = [number for section in UESTC_COVID19_SPLITS[part].values() for number in section]
    assert sorted(numbers) == list(range(1, cases + 1))


def test_what_is_missing_is_named(root, tmp_path):
    (tmp_path / "part1").symlink_to(root / "part1")
    with pytest.raises(FileNotFoundError, match=f"data set folder not found: {tmp_path}/part2"):
        uestc_covid19_datalist(tmp_path, 2, "test")
    (tmp_path / "part2").mkdir()
    for kind, cases in (("image", range(1, 51)), ("label", range(1, 49))):
        (tmp_path / "part2" / kind).mkdir()
        for number in cases:
            (tmp_path / "part2" / kind / f"case_{number}.nii.gz").touch()
    assert len(uestc_covid19_datalist(tmp_path, 2, "training")) == 30
    with pytest.raises(FileNotFoundError, match="no label for the cases case_49, case_50"):
        uestc_covid19_datalist(tmp_path, 2, "test")


def test_unknown_parts_and_sections_are_refused(root):
    with pytest.raises(ValueError, match=r"part must be one of \[1, 2\], found 3"):
        uestc_covid19_datalist(root, 3, "test")
    with pytest.raises(ValueError, match=r"section must be one of \['training', 'validation', 'test'\], found 'val'"):
        uestc_covid19_datalist(root, 1, "val")
