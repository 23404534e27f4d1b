"""Patients in a training: on one side, in a fold, from a list; a name that gives one away is warned of."""

from __future__ import annotations

import json
import warnings

import pytest

from monai_margincal.workflows import training_data

CASES = ["p1_1", "p1_2", "p1_3", "p2_1", "p2_2", "p3_1"]


@pytest.fixture
def folder(tmp_path):
    for kind in ("images", "labels"):
        (tmp_path / kind).mkdir()
        for case in CASES:
            (tmp_path / kind / f"{case}.nii").touch()
    return tmp_path


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def cases(data):
    return {name: [item["case"] for item in items] for name, items in data.items()}


PATTERN = {"group_pattern": "{group}_*"}


def test_a_share_draws_patients(folder):
    for seed in range(6):
        found = cases(training_data(folder, validation=0.5, seed=seed, **PATTERN))
        assert sorted(found["training"] + found["validation"]) == CASES
        assert {name[:2] for name in found["training"]}.isdisjoint(name[:2] for name in found["validation"])
        assert len(found["validation"]) == 3
        whole = cases(training_data(folder, training="all", validation=0.5, seed=seed, **PATTERN))
        assert whole == {"training": CASES, "validation": found["validation"]}, "evaluation scores what was left out"


def test_folds(folder):
    held_out = []
    for fold in range(3):
        found = cases(training_data(folder, folds=3, fold=fold, **PATTERN))
        assert sorted(found["training"] + found["validation"]) == CASES
        evaluated = cases(training_data(folder, training="all", folds=3, fold=fold, **PATTERN))
        assert evaluated == {"training": CASES, "validation": found["validation"]}
        held_out.append(found["validation"])
    assert sorted(held_out) == [CASES[:3], CASES[3:5], CASES[5:]]


def test_names_that_suggest_patients_are_warned_of(folder):
    with pytest.warns(
        UserWarning, match="found names that suggest the group 'p1' in 'training' .* and in 'validation'"
    ):
        training_data(folder, validation=["p1_3", "p2_1"])
    training_data(folder, validation=["p1_1", "p1_2", "p1_3"])
    training_data(folder, training="all", validation=["p1_3"])
    training_data(folder, validation=["p1_3", "p2_1"], group_pattern="{group}")


def entry(case, **more):
    return {"image": f"images/{case}.nii", "label": f"labels/{case}.nii", "case": case, **more}


def write(folder, content):
    (folder / "list.json").write_text(json.dumps(content))
    return {"dataset_dir": "/not/used", "datalist_file": folder / "list.json"}


def test_a_list_with_groups(folder):
    given_list = write(folder, {"training": [entry("p1_1", group="x")], "validation": [entry("p1_2", group="x")]})
    with pytest.raises(
        ValueError, match=r"list.json: found the group 'x' in 'training' \('p1_1'\) and in 'validation'"
    ):
        training_data(**given_list)
    given_list = write(folder, {"training": [entry("p1_1"), entry("p2_1")], "validation": [entry("p1_2")]})
    with pytest.warns(UserWarning, match="names that suggest the group 'p1'"):
        training_data(**given_list)
    with pytest.raises(ValueError, match=r"list.json: found the group 'p1' in 'training'"):
        training_data(**given_list, **PATTERN)
    own = {"p1_1": "a", "p2_1": "b", "p1_2": "c"}
    assert [item["group"] for item in training_data(**given_list, groups=own)["training"]] == ["a", "b"]


def test_a_list_with_folds(folder):
    items = [entry(case, group=case[:2], fold=int(case[1]) - 1) for case in CASES]
    given_list = write(folder, {"training": items, "test": []})
    assert cases(training_data(**given_list, fold=1)) == {"training": [*CASES[:3], "p3_1"], "validation": CASES[3:5]}
    with pytest.raises(ValueError, match="its cases have folds, of which `fold` names one for validation"):
        training_data(**given_list)
    with pytest.raises(ValueError, match=r"list.json: found no fold 5 .* expected one of the folds \[0, 1, 2\]"):
        training_data(**given_list, fold=5)
    with pytest.raises(ValueError, match=r"folds: found 3 beside the data list .* expected `fold` alone"):
        training_data(**given_list, folds=3, fold=1)
    items[1]["fold"] = 2
    with pytest.raises(ValueError, match=r"group 'p1' in 'fold 0' \('p1_1', 'p1_3'\) and in 'fold 2' \('p1_2'\)"):
        training_data(**write(folder, {"training": items}), fold=1)


@pytest.mark.parametrize(
    ("given_options", "error", "message"),
    [
        (
            {"folds": 3},
            ValueError,
            "fold: found None beside 3 folds, expected the fold to validate on, from 0 to folds - 1",
        ),
        ({"fold": 0}, ValueError, "folds: found None beside fold 0, expected the number of folds, or a data list"),
        ({"folds": 3, "fold": 3}, ValueError, r"fold: found no fold 3 .* expected one of the folds \[0, 1, 2\]"),
        ({"folds": 4, "fold": 0}, ValueError, "folds: found 4 for 3 groups"),
        ({"folds": "3", "fold": 0}, TypeError, "folds: found '3', expected a number of folds, a whole number"),
        ({"folds": 3, "fold": "0"}, TypeError, "fold: found '0', expected the number of a fold"),
        (
            {"folds": 3, "fold": 0, "validation": 0.3},
            ValueError,
            "beside the validation cases 0.3, expected one of the two",
        ),
        ({"folds": 3, "fold": 0, "validation": "all"}, ValueError, "beside the validation cases 'all'"),
        ({"folds": 3, "fold": 0, "training": ["p1_1"]}, ValueError, r"beside the training cases \['p1_1'\]"),
        ({"validation": ["p1_1"]}, ValueError, r"'p1' in 'validation' \('p1_1'\) and in 'training' \('p1_2', 'p1_3'\)"),
    ],
)
def test_what_cannot_be_is_named(folder, given_options, error, message):
    with pytest.raises(error, match=message):
        training_data(folder, **given_options, **PATTERN)
