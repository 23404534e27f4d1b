"""`margincal datalist`: real files on disk become a list that can be moved with them."""

from __future__ import annotations

import json

import pytest

from monai_margincal.cli import main


@pytest.fixture
def dataset(tmp_path):
    for folder in ("images", "labels"):
        (tmp_path / folder).mkdir()
        for case in "abcde":
            (tmp_path / folder / f"{case}.nii.gz").touch()
    return tmp_path


def test_folder(dataset, capsys):
    assert main(["datalist", "folder", str(dataset), "--output", str(dataset / "list.json")]) == 0
    content = json.loads((dataset / "list.json").read_text())
    assert {section: len(items) for section, items in content.items()} == {"training": 3, "validation": 1, "test": 1}
    cases = [item["case"] for items in content.values() for item in items]
    assert sorted(cases) == list("abcde")
    for items in content.values():
        for item in items:
            assert item["image"] == f"images/{item['case']}.nii.gz"
            assert item["label"] == f"labels/{item['case']}.nii.gz"


def test_a_section_can_be_left_out(dataset):
    main(["datalist", "folder", str(dataset), "--output", str(dataset / "list.json"), "--test", "0"])
    assert set(json.loads((dataset / "list.json").read_text())) == {"training", "validation"}


def test_list_elsewhere_has_absolute_paths(dataset, tmp_path_factory):
    output = tmp_path_factory.mktemp("elsewhere") / "list.json"
    main(["datalist", "folder", str(dataset), "--output", str(output)])
    assert json.loads(output.read_text())["training"][0]["image"].startswith(str(dataset))


def test_uestc(tmp_path, capsys):
    for folder in ("image", "label"):
        (tmp_path / "part2" / folder).mkdir(parents=True)
        for case in range(1, 51):
            (tmp_path / "part2" / folder / f"case_{case}.nii.gz").touch()
    main(["datalist", "uestc-covid19", str(tmp_path), "--part", "2", "--output", str(tmp_path / "list.json")])
    assert "30 training, 10 validation, 10 test" in capsys.readouterr().out


def test_errors(dataset, capsys):
    (dataset / "labels" / "c.nii.gz").unlink()
    assert main(["datalist", "folder", str(dataset), "--output", str(dataset / "list.json")]) == 1
    assert "images/c.nii.gz" in capsys.readouterr().err
    (dataset / "list.json").write_text("mine")
    assert main(["datalist", "folder", str(dataset), "--output", str(dataset / "list.json")]) == 1
    assert "exists and is not overwritten" in capsys.readouterr().err
    assert (dataset / "list.json").read_text() == "mine"
