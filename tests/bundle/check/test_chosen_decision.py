"""The decision of inference, before it runs."""

from __future__ import annotations

import pytest
import torch

from monai_margincal.bundle import bundle_dir
from monai_margincal.bundle.check import check_bundle
from monai_margincal.decisions import ClassOffsets

BUNDLE = bundle_dir("covid19_ct_lesion_coplenet")


def findings(**overrides):
    return [
        str(found) for found in check_bundle(BUNDLE, overrides) if "decision" in str(found) or "offsets" in str(found)
    ]


def test_the_shipped_one_and_none_at_all():
    assert findings() == findings(decision="argmax") == []


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: None, "FileNotFoundError: {}: no such file, expected a JSON file of class offsets"),
        (
            ClassOffsets([0, 1, 2]).to_json,
            "ValueError: {}: found offsets of 3 classes, expected ['background', 'lesion']",
        ),
        (lambda path: path.write_text("{}"), "ValueError: {}: found "),
    ],
    ids=["missing", "other classes", "no offsets"],
)
def test_a_file_that_inference_would_refuse(write, message, tmp_path):
    path = tmp_path / "mine.json"
    write(path)
    (found,) = findings(decision=str(path))
    assert found.startswith("error: configs/inference.json: found " + message.format(path))


def test_one_of_other_weights(tmp_path):
    torch.save({"bias": torch.zeros(1)}, tmp_path / "model.pt")
    ClassOffsets([0, 1], fitted_on={"weights": "sha256:0"}).to_json(tmp_path / "decision.json")
    (found,) = findings(checkpoint=str(tmp_path / "model.pt"))
    assert found.startswith("warning: configs/inference.json: found as the decision the largest logit, since ")
