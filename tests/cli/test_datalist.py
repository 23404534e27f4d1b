"""`margincal datalist`: real files on disk become a list that can be moved with them."""

from __future__ import annotations

import json

import pytest

from monai_margincal.cli import main
from monai_margincal.workflows import training_data


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


@pytest.fixture
def patients(tmp_path):
    """Nine patients, with one, two or three scans each."""
    scans = [f"P{patient:02}_{scan}" for patient in range(9) for scan in range(1, 2 + patient % 3)]
    for folder in ("images", "labels"):
        (tmp_path / folder).mkdir()
        for case in scans:
            (tmp_path / folder / f"{case}.nii.gz").touch()
    rows = [f"{case},{int(case[1:3])},{case[:3]}" for case in scans]
    (tmp_path / "cases.csv").write_text("\n".join(["case,age,patient_id", *rows]))
    return tmp_path


def write_list(folder, *words):
    output = folder / f"{len(list(folder.glob('*.json')))}.json"
    assert main(["datalist", "folder", str(folder), "--output", str(output), *words]) == 0
    return json.loads(output.read_text())


def test_patients_stay_together_and_the_list_says_them(patients, capsys):
    content = write_list(patients, "--groups", str(patients / "cases.csv"))
    patients_of = {section: {item["group"] for item in items} for section, items in content.items()}
    assert sum(map(len, patients_of.values())) == len(set().union(*patients_of.values())) == 9
    assert all(item["group"] == item["case"][:3] for items in content.values() for item in items)
    assert capsys.readouterr().out.startswith("10 training (5 groups), ")
    assert write_list(patients, "--group-pattern", "{group}_*") == content
    assert write_list(patients, "--groups", str(patients / "cases.csv"), "--group-column", "patient_id") == content
    assert write_list(patients, "--groups", str(patients / "cases.csv"), "--seed", "1") != content


def test_folds(patients, capsys):
    content = write_list(patients, "--groups", str(patients / "cases.csv"), "--folds", "3", "--test", "0")
    assert list(content) == ["training"]
    assert {(item["group"], item["fold"]) for item in content["training"]} == {
        (item["group"], item["fold"]) for item in {item["group"]: item for item in content["training"]}.values()
    }
    assert "18 training (9 groups; 3 folds of 6, 6, 6)" in capsys.readouterr().out
    data = training_data("/not/used", datalist_file=patients / "0.json", fold=2)
    assert sorted(len(items) for items in data.values()) == [6, 12]
    with_test = write_list(patients, "--groups", str(patients / "cases.csv"), "--folds", "3")
    assert "fold" not in with_test["test"][0]
    assert len(with_test["test"]) == 4


def test_names_that_suggest_patients_are_warned_of(patients):
    with pytest.warns(
        UserWarning, match="found names that suggest the group 'P.*, expected every group .* in one part"
    ):
        write_list(patients)
    with pytest.warns(UserWarning, match=r"names that suggest the group 'P05' in 'fold 0' \('P05_3'\) and in"):
        write_list(patients, "--folds", "2", "--test", "0")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--groups", "cases.csv", "--group-column", "who"],
            "cases.csv: found no column 'who', expected one of ['age', 'patient_id']",
        ),
        (["--group-pattern", "X{group}"], "found no group in the case names 'P00_1', 'P01_1',"),
        (["--group-column", "age"], "--group-column: found 'age' without a table, expected --groups to name its file"),
        (["--folds", "3", "--validation", "0.3"], "--validation: found 0.3 beside --folds, expected one of the two"),
        (["--folds", "10", "--test", "0", "--group-pattern", "{group}_*"], "folds: found 10 for 9 groups"),
        (["--groups", "none.csv"], "none.csv: no such file, expected a CSV file"),
    ],
)
def test_errors_about_groups(patients, capsys, monkeypatch, words, message):
    monkeypatch.chdir(patients)
    assert main(["datalist", "folder", ".", "--output", "list.json", *words]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (patients / "list.json").exists()


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
