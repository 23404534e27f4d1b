"""Metrics under another default device: "meta" stands for all of them where there is no GPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from monai_margincal import DatasetIoU
from monai_margincal.metrics import class_iou, class_precision, class_recall, class_union, confusion_matrix

RESULTS = ("confusion_matrix", "per_class", "recall", "precision", "image_counts", "absent_classes")


def results(ignore_index, form):
    generator = torch.Generator().manual_seed(0)
    predicted = torch.randint(0, 3, (2, 1, 4, 5), generator=generator, device="cpu")
    true = torch.randint(0, 2, (2, 1, 4, 5), generator=generator, device="cpu")
    if form == "one-hot":
        predicted, true = (torch.nn.functional.one_hot(one[:, 0], 3).movedim(-1, 1) for one in (predicted, true))
    metric = DatasetIoU(num_classes=3, ignore_index=ignore_index)
    metric(predicted, true)
    metric(list(predicted), list(true))
    metric.append(torch.tensor([[1, 0, 0], [0, 2, 1], [0, 0, 0]], device="cpu"))
    metric.extend(np.ones((2, 3, 3), dtype=np.int64))
    found = {name: getattr(metric, name) for name in RESULTS}
    found |= {"mean": metric.aggregate(), "rows": metric.get_buffer()}
    metric.reset()
    return found


@pytest.mark.parametrize("form", ["index", "one-hot"])
@pytest.mark.parametrize("ignore_index", [None, 255, 1])
def test_dataset_iou(ignore_index, form):
    expected = results(ignore_index, form)
    with torch.device("meta"):
        found = results(ignore_index, form)
    torch.testing.assert_close(found, expected, equal_nan=True)


def test_made_before():
    metric, image = DatasetIoU(num_classes=2), torch.tensor([[[0, 1, 1]]])
    with torch.device("meta"):
        metric(image, image)
        assert metric.aggregate().item() == 1
        metric.reset()
        metric(image, image)
    assert metric.aggregate().item() == 1


@pytest.mark.parametrize("quantity", [class_iou, class_precision, class_recall, class_union])
def test_of_arrays(quantity):
    matrix = np.array([[8, 2], [1, 3]])
    expected = quantity(matrix)
    with torch.device("meta"):
        np.testing.assert_array_equal(quantity(matrix), expected)
        assert not quantity(torch.tensor(matrix.tolist(), device="cpu")).is_meta


def test_confusion_matrix():
    image = torch.tensor([[0, 1, 1, 0]])
    with torch.device("meta"):
        assert confusion_matrix(image, image, num_classes=2).tolist() == [[2, 0], [0, 2]]
