"""Properties that are there but cannot be right: null, empty, of a wrong type."""

from __future__ import annotations

from pathlib import Path

import pytest

from monai_margincal.bundle import bundle_dir
from monai_margincal.bundle.check.configs import Workflow
from monai_margincal.bundle.check.properties import check_properties

CONFIGS = Path(bundle_dir("covid19_ct_lesion_coplenet")) / "configs"


def properties(kind, given):
    name = "train" if kind == "train" else "inference"
    return [str(f) for f in check_properties(Workflow(CONFIGS.parent, kind, (CONFIGS / f"{name}.json",), given))]


@pytest.mark.parametrize("kind", ["train", "infer"])
def test_our_own(kind):
    assert properties(kind, {}) == []


@pytest.mark.parametrize(
    "id", ["bundle_root", "device", "dataset_dir", "dataset", "evaluator", "network_def", "inferer"]
)
@pytest.mark.parametrize(("value", "shown"), [(None, "null"), ("", "''"), ([], "[]"), ({}, "{}")])
def test_nothing_where_a_value_is_required(id, value, shown):
    expected = f"error: configs/inference.json: found {id} {shown}, expected a value for the property"
    assert properties("infer", {id: value})[0].startswith(expected)


@pytest.mark.parametrize(
    ("kind", "id", "value", "message"),
    [
        ("infer", "dataset_dir", 5, "found dataset_dir 5, expected the path of a folder"),
        ("infer", "dataset_dir", "$None", "found dataset_dir None, expected the path of a folder"),
        ("infer", "dataset_dir", "$1 / 0", "found dataset_dir: ZeroDivisionError: division by zero"),
        ("infer", "dataset_dir", ["a", "b"], "found dataset_dir ['a', 'b'], expected the path of a folder"),
        ("infer", "device", "gpu", "found device 'gpu', expected a device, such as 'cpu' or 'cuda:0'"),
        ("infer", "device", True, "found device True, expected a device"),
        ("infer", "inferer", 3, "found inferer 3, expected a component with _target_, a reference or an expression"),
        ("infer", "inferer", "SimpleInferer", "found inferer 'SimpleInferer', expected a component"),
        ("infer", "inferer", {"roi_size": [9, 9]}, "found inferer a dictionary without _target_, ['roi_size'], expected"),
        ("infer", "evaluator", {"_target_": "x", "_disabled_": True}, "found evaluator switched off by _disabled_"),
        ("train", "epochs", "x", "found train::trainer::max_epochs 'x', expected a whole number of epochs, 1 or more"),
        ("train", "epochs", 0, "found train::trainer::max_epochs 0, expected a whole number"),
        ("train", "epochs", 2.5, "found train::trainer::max_epochs 2.5, expected a whole number"),
        ("train", "epochs", True, "found train::trainer::max_epochs True, expected a whole number"),
        ("train", "train#trainer#max_epochs", None, "found train::trainer::max_epochs null, expected a value"),
        ("train", "train#inferer", None, "found train::inferer null, expected a value for the property 'train_inferer'"),
        ("train", "train#dataset", "data", "found train::dataset 'data', expected a component"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be(kind, id, value, message):
    found = properties(kind, {id: value})
    assert any(message in text for text in found), found


@pytest.mark.parametrize(
    ("id", "value"),
    [
        ("dataset_dir", "/any/where"), ("dataset_dir", Path("/any")), ("device", "cuda:1"), ("device", "$torch.device('cpu')"),
        ("inferer", "@other"), ("evaluator", "$@other"), ("inferer", {"_target_": "SimpleInferer"}),
    ],
)  # fmt: skip
def test_values_that_can_be(id, value):
    assert properties("infer", {id: value, "other": {"_target_": "SimpleInferer"}}) == []
