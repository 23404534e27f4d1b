"""Which cases are trained on and which validated on."""

from __future__ import annotations

import json

import nibabel
import numpy as np
import pytest

from monai_margincal.workflows import training_data


@pytest.fixture
def folder(tmp_path):
    for case in ("a", "b", "c", "all"):
        for kind in ("images", "labels"):
            (tmp_path / kind).mkdir(exist_ok=True)
            nibabel.save(
                nibabel.Nifti1Image(np.zeros((2, 2, 2), np.uint8), np.eye(4)), tmp_path / kind / f"{case}.nii.gz"
            )
    return tmp_path


def cases(folder, **parts):
    return {name: [item["case"] for item in items] for name, items in training_data(folder, **parts).items()}


@pytest.mark.parametrize(
    ("parts", "training", "validation"),
    [
        ({"validation": ["c", "a"]}, ["all", "b"], ["c", "a"]),
        ({"training": "b", "validation": None}, ["b"], ["a", "all", "c"]),
        ({"training": "all", "validation": "all"}, ["a", "all", "b", "c"], ["a", "all", "b", "c"]),
        ({"training": "all", "validation": "b"}, ["a", "all", "b", "c"], ["b"]),
        ({"training": ["all"], "validation": ["b"]}, ["all"], ["b"]),
        ({"training": ["all"], "validation": "all"}, ["all"], ["a", "all", "b", "c"]),
    ],
)
def test_parts(folder, parts, training, validation):
    assert cases(folder, **parts) == {"training": training, "validation": validation}


def test_a_share_is_the_same_whatever_else_is_trained_on(folder):
    """Evaluation names no training cases, and must score those that the training left out."""
    left_out = [cases(folder, validation=0.5, seed=seed)["validation"] for seed in range(4)]
    assert [cases(folder, training="all", validation=0.5, seed=seed)["validation"] for seed in range(4)] == left_out
    assert len({tuple(part) for part in left_out}) > 1


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"validation": "all"}, "no case is left for part 'training': 'validation' takes all 4 cases"),
        ({"training": "all", "validation": None}, "no case is left for part 'validation': 'training' takes all"),
        ({"training": ["a"], "validation": ["a"]}, "case 'a' is named in two parts"),
        ({"validation": "d"}, "expected distinct case names"),
    ],
)
def test_what_cannot_be_is_named(folder, parts, message):
    with pytest.raises(ValueError, match=message):
        training_data(folder, **parts)


def test_a_list_takes_the_place_of_the_folder(folder):
    item = {"image": "images/a.nii.gz", "label": "labels/a.nii.gz"}
    other = {"image": "images/b.nii.gz", "label": "labels/b.nii.gz"}
    (folder / "list.json").write_text(json.dumps({"training": [item], "validation": [other]}))
    found = training_data("/not/used", datalist_file=folder / "list.json", training="not used")
    assert found["training"][0]["label"] == f"{folder}/labels/a.nii.gz"
    assert found["validation"][0]["image"] == f"{folder}/images/b.nii.gz"
