"""Offsets as they are used: sums, shapes, files."""

from __future__ import annotations

import json

import pytest
import torch
from monai.data import MetaTensor

from monai_margincal.decisions import ClassOffsets, DecideClass, DecideClassd

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, 1, -1, 2])
def test_the_largest_sum(dim, dtype):
    logits = torch.randn(3, 3, 3, 3, generator=torch.Generator().manual_seed(0)).to(dtype)
    offsets = ClassOffsets([0.0, 0.7, -1.2])
    shape = [1, 1, 1, 1]
    shape[dim] = 3
    sums = logits.double() + torch.tensor([0.0, 0.7, -1.2], dtype=torch.float64).reshape(shape)
    assert torch.equal(offsets(logits, dim), sums.argmax(dim))


def test_equal_sums_go_to_the_first():
    assert ClassOffsets([0, 1.0])(torch.tensor([[2.0], [1.0]]), dim=0).item() == 0


def test_one_logit_is_class_1_against_0():
    logit = torch.tensor([[-0.6, -0.5, -0.4, 1.0]])
    offsets = ClassOffsets([0, 0.5])
    assert offsets(logit, dim=0).tolist() == [0, 0, 1, 1]
    assert offsets(torch.cat([torch.zeros_like(logit), logit]), dim=0).tolist() == [0, 0, 1, 1]


def test_another_number_of_classes_is_refused():
    offsets = ClassOffsets([0, 1, 2], class_names=["none", "liver", "tumour"])
    with pytest.raises(
        ValueError, match=r"\(2, 4, 5\), 4 along dimension 1, expected 3 classes \(none, liver, tumour\)"
    ):
        offsets(torch.zeros(2, 4, 5))
    with pytest.raises(ValueError, match=r"found logits of shape \(3,\), expected 3 classes along dimension 1"):
        offsets(torch.zeros(3))


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ([0.0], "expected one per class, of two or more classes"),
        ([0.1, 0.0], "expected finite numbers, the first of them 0"),
        ([0.0, float("nan")], "expected finite numbers"),
        ([0.0, float("inf")], "expected finite numbers"),
    ],
)
def test_what_is_no_offset(offsets, message):
    with pytest.raises(ValueError, match=message):
        ClassOffsets(offsets)


def test_names_are_one_per_class():
    with pytest.raises(ValueError, match=r"class_names: found \['a'\], expected 2 names"):
        ClassOffsets([0, 1], class_names=["a"])


def test_files(tmp_path):
    offsets = ClassOffsets([0, -0.25, 1], ["a", "b", "c"], {"cases": 3, "cross_fitted_gain": 0.01})
    offsets.to_json(tmp_path / "new" / "decision.json")
    assert ClassOffsets.from_json(tmp_path / "new" / "decision.json") == offsets
    ClassOffsets([0, 1]).to_json(tmp_path / "new" / "decision.json")  # an older one is replaced
    (tmp_path / "notes.json").write_text("{}")
    with pytest.raises(FileExistsError, match=r"notes\.json: found a file that holds no class offsets"):
        offsets.to_json(tmp_path / "notes.json")
    assert (tmp_path / "notes.json").read_text() == "{}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "expected a JSON file of class offsets"),
        ("3", "a.json: found 3, expected class offsets"),
        (json.dumps({"format": "monai_margincal.class_counts", "version": 1}), "expected class offsets"),
        (json.dumps({"format": "monai_margincal.class_offsets", "version": 1}), "a.json: 'offsets'"),
        (
            json.dumps({"format": "monai_margincal.class_offsets", "version": 1, "offsets": [1, 2]}),
            "a.json: offsets: found",
        ),
    ],
)
def test_other_files_are_refused_by_name(content, message, tmp_path):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        ClassOffsets.from_json(tmp_path / "a.json")


@pytest.mark.parametrize("offsets", [None, [0.0, 1.0, -1.0], "file"])
def test_in_place_of_as_discrete(offsets, tmp_path):
    logits = MetaTensor(torch.randn(3, 4, 5, 2), meta={"filename_or_obj": "ct.nii.gz"})
    given = offsets
    if offsets == "file":
        given = tmp_path / "decision.json"
        ClassOffsets([0.0, 2.0, 0.0]).to_json(given)
    decided = DecideClassd("pred", given)({"pred": logits, "image": 1})
    shift = {"file": [0.0, 2.0, 0.0]}.get(offsets if isinstance(offsets, str) else "", offsets or [0.0, 0.0, 0.0])
    expected = (logits.as_tensor() + torch.tensor(shift).reshape(3, 1, 1, 1)).argmax(0, keepdim=True)
    assert decided["pred"].dtype == torch.uint8
    assert torch.equal(decided["pred"].as_tensor().long(), expected)
    assert decided["pred"].meta["filename_or_obj"] == "ct.nii.gz"
    assert decided["image"] == 1


def test_a_sigmoid_in_a_chain():
    assert DecideClass()(torch.tensor([[-0.1, 0.1]])).tolist() == [[0, 1]]
    assert DecideClass([0, 0.2])(torch.tensor([[-0.1, 0.1]])).tolist() == [[1, 1]]


def test_many_classes_need_more_than_a_byte():
    assert DecideClass()(torch.eye(300)[:, 299:]).dtype == torch.int32
