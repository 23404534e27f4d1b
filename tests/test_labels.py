"""One reading of class-index labels: what is no class is told in the same words by all who read them."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from monai_margincal import MarginCalibrationLoss
from monai_margincal.counting.voxel_counts import label_voxel_counts
from monai_margincal.experiments.cases import CaseStore
from monai_margincal.labels import class_labels, expected_classes, not_integers, undeclared_labels
from monai_margincal.margins import ClassMargins
from monai_margincal.margins.bounds import BoundTerms
from monai_margincal.metrics import confusion_matrix

LOGITS = torch.zeros(1, 2, 4)
ONES = ClassMargins([1, 1], [1, 1])


def _study(label: torch.Tensor) -> None:
    """A case whose files need not be read: the transform brings the label."""
    store = CaseStore()
    store.digest = lambda item: "digest"  # type: ignore[method-assign]
    item = {"case": "one", "image": torch.zeros(1, 4), "label": label}
    store.load([item], [], lambda _: [], 2)


#: what reads labels -> how
READERS = {
    "core": lambda label: class_labels(label, 2),
    "loss": lambda label: MarginCalibrationLoss(margins=0.0)(LOGITS, label),
    "bound": lambda label: BoundTerms.from_logits(LOGITS, label, ONES),
    "metric": lambda label: confusion_matrix(torch.zeros_like(label), label, 2),
    "study": _study,
    "counting": lambda label: label_voxel_counts(label, ids=[0, 1]),
    "counting an array": lambda label: label_voxel_counts(label.numpy(), ids=[0, 1]),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("label", "message"),
    [
        ([0, 1, 7, -3], r"found the label value\(s\) -3.*, 7.*, expected class ids \[0, 1\]\."),
        ([0, 1, 0.5, 1], r"found values that are not integers: 0\.5, expected class ids \[0, 1\]"),
        ([0, 1, 0.5, 7], r"found values that are not integers: 0\.5, expected"),
        ([0, np.nan, 0, 1], r"found values that are not integers: nan, expected"),
    ],
)
def test_the_same_mistake_is_told_in_the_same_words(reader, label, message):
    with pytest.raises(ValueError, match=message):
        READERS[reader](torch.tensor([label]))


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int32, torch.float16, torch.float64])
def test_every_dtype_is_read_alike(dtype):
    labels, valid = class_labels(torch.tensor([[0, 1, 1]]).to(dtype), 2)
    assert labels.tolist() == [[0, 1, 1]]
    assert labels.dtype == torch.int64
    assert valid is None


def test_ignored_voxels_are_told_and_hold_a_class():
    labels, valid = class_labels(torch.tensor([0, 255, 1], dtype=torch.uint8), 2, 255)
    assert labels.tolist() == [0, 0, 1]
    assert valid.tolist() == [True, False, True]


def test_minus_one_is_not_255_of_uint8():
    with pytest.raises(ValueError, match=r"value\(s\) 255, expected class ids \[0, 1\] or the ignored value -1"):
        class_labels(torch.tensor([0, 255], dtype=torch.uint8), 2, ignore_index=-1)


def test_what_was_checked_before_is_brought_into_range():
    labels, _ = class_labels(torch.tensor([0, 7, -2]), 2, check=False)
    assert labels.tolist() == [0, 1, 0]


def test_no_voxel_is_no_mistake():
    labels, _ = class_labels(torch.zeros(0), 2)
    assert labels.shape == (0,)


def test_messages_name_the_place_and_end_with_advice():
    with pytest.raises(ValueError, match=r"^case\.nii: .* \(0 a, 1 b\)\. Look again\.$"):
        class_labels(torch.tensor([2]), 2, classes_in_messages="0 a, 1 b", where="case.nii", advice="Look again.")
    with pytest.raises(ValueError, match=r"A mask of 0 and 255 has to be divided by 255 first"):
        class_labels(torch.tensor([0, 255]), 2)


def test_long_lists_are_cut():
    expected = expected_classes(range(118))
    assert re.fullmatch(r"class ids \[0, 1, .*, 15, \.\.\., 117\]", expected)
    assert undeclared_labels("x", range(200, 300), expected).startswith("x: found the label value(s) 200, ")
    assert "207, ... (100 values in all), expected" in undeclared_labels("x", range(200, 300), expected)
    assert "7.5, ... (20 different values), expected" in not_integers("x", [k + 0.5 for k in range(20)], expected)


def test_one_voxel_and_several():
    assert "9 (1 voxel), 10 (2 voxels) besides 0" in undeclared_labels("x", {9: 1, 10: 2}, "class ids [0]", [0])
