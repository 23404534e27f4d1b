"""Data lists in JSON files: what `margincal datalist` writes is what training reads."""

from __future__ import annotations

import json

import pytest

from monai_margincal.datasets import read_datalist


@pytest.fixture
def folder(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.nii").touch()
    return tmp_path


def write(folder, content):
    path = folder / "list.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


A = {"image": "a.nii", "label": "a.nii", "case": "a"}
B = {"image": "b.nii", "label": "b.nii", "case": "b"}


def test_relative_and_absolute_paths(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    path = write(
        folder, {"training": [A], "validation": [{"image": str(folder / "b.nii"), "label": "b.nii"}], "test": []}
    )
    sections = read_datalist(path)
    assert list(sections) == ["training", "validation"]
    assert sections["training"] == [{"image": str(folder / "a.nii"), "label": str(folder / "a.nii"), "case": "a"}]
    assert sections["validation"][0]["image"] == str(folder / "b.nii")


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("{", ValueError, "expected a data list in JSON"),
        ([A], ValueError, r"found a list, expected an object with the sections \['training', 'validation'\]"),
        ({"training": [A]}, ValueError, r"no case in section 'validation' \(sections with cases: \['training'\]\)"),
        ({"training": [A], "validation": []}, ValueError, "no case in section 'validation'"),
        ({"training": [A], "validation": [A]}, ValueError, "in 'training' and in 'validation', expected it in one"),
        (
            {"training": [{"image": "a.nii"}], "validation": [B]},
            ValueError,
            r"expected a mapping with paths for \['image', 'label'\]",
        ),
        ({"training": ["a.nii"], "validation": [B]}, ValueError, "found the entry 'a.nii' in 'training'"),
        (
            {"training": [{**A, "label": "c.nii"}], "validation": [B]},
            FileNotFoundError,
            r"the label .*c\.nii in 'training'",
        ),
    ],
)
def test_what_is_wrong_is_named(folder, content, error, message):
    path = write(folder, content)
    with pytest.raises(error, match=message) as raised:
        read_datalist(path)
    assert str(path) in str(raised.value)


def test_a_plain_list_and_optional_keys(folder):
    """What counting asks of a list: labels that exist; images are made absolute and not looked for."""
    cases = [{"label": "a.nii", "image": "gone.nii", "age": 7}, {"label": ["b.nii"], "image": None}]
    asked = {"sections": ["training"], "keys": ["label"], "optional_keys": ["image"]}
    expected = [
        {"label": str(folder / "a.nii"), "image": str(folder / "gone.nii"), "age": 7},
        {"label": [str(folder / "b.nii")], "image": None},
    ]
    assert read_datalist(write(folder, cases), plain_list=True, **asked) == {"training": expected}
    assert read_datalist(write(folder, {"training": cases}), plain_list=True, **asked) == {"training": expected}
    with pytest.raises(ValueError, match="found a list, expected an object with the sections"):
        read_datalist(write(folder, cases), **asked)
    with pytest.raises(ValueError, match=r"found no case in section 'training' \(sections with cases: \[\]\)"):
        read_datalist(write(folder, []), plain_list=True, **asked)
    with pytest.raises(ValueError, match=r"found the entry \{'label': 3\} in 'training'"):
        read_datalist(write(folder, [{"label": 3}]), plain_list=True, **asked)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.json: no such file, expected a data list in JSON"):
        read_datalist(tmp_path / "none.json")


@pytest.mark.parametrize(
    "content", ["3", "null", '"text"', "[" * 100_000, '{"training": 3}', '{"training": {"image": "a"}}']
)
def test_every_wrong_content_is_an_error_that_names_the_file(folder, content):
    with pytest.raises(ValueError, match=r"^/.*/list\.json: found "):
        read_datalist(write(folder, content), ["training"])


def test_the_folder_of_the_list_is_no_list(tmp_path):
    with pytest.raises(ValueError, match=r"expected a data list in JSON"):
        read_datalist(tmp_path)


def test_a_group_in_two_sections_is_refused(folder):
    """Also in one that is not read: what was trained on must not be reported on."""
    for name in "cd":
        (folder / f"{name}.nii").touch()
    case = {name: {"image": f"{name}.nii", "label": f"{name}.nii", "case": name} for name in "abcd"}
    sections = {"training": [{**case["a"], "group": "p"}], "validation": [{**case["b"], "group": "q"}]}
    assert read_datalist(write(folder, sections))["training"][0]["group"] == "p"
    path = write(
        folder, {**sections, "test": [{**case["c"], "group": "q"}], "labels": {"0": "background"}, "tags": ["x"]}
    )
    assert read_datalist(path, ["training"])["training"][0]["case"] == "a"
    with pytest.raises(
        ValueError, match=r"list.json: found the group 'q' in 'validation' \('b'\) and in 'test' \('c'\)"
    ):
        read_datalist(path)


def test_folds_are_pointed_at(folder):
    path = write(folder, {"training": [{**A, "fold": 0}, {**B, "fold": 1}]})
    with pytest.raises(
        ValueError, match="at least one; its cases have folds, of which `fold` names one for validation"
    ):
        read_datalist(path)
