"""The exact confusion matrix of one image, against a literal one, and what it refuses."""

from __future__ import annotations

import nibabel
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from monai.data import MetaTensor
from shared import SHARED, needs_shared

from monai_margincal.experiments.cases import Case
from monai_margincal.experiments.decoders import ArgmaxDecoder
from monai_margincal.experiments.evaluation import evaluate, validation_curve_point
from monai_margincal.losses import RunningConfusion
from monai_margincal.metrics import (
    DatasetIoU,
    class_iou,
    class_precision,
    class_recall,
    confusion,
    confusion_matrix,
    count_pairs,
)


def literal_matrix(predicted, true, num_classes, ignore_index=None) -> np.ndarray:
    """Count pair by pair, as the definition says."""
    matrix = np.zeros((num_classes, num_classes), dtype=np.int64)
    for p, t in zip(np.ravel(predicted).tolist(), np.ravel(true).tolist(), strict=True):
        if t != ignore_index:
            matrix[int(t), int(p)] += 1
    return matrix


def one_hot(indices: torch.Tensor, num_classes: int, dtype=torch.float32) -> torch.Tensor:
    return torch.stack([(indices == k).to(dtype) for k in range(num_classes)])


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_equals_the_literal_count_in_every_form(data):
    num_classes = data.draw(st.integers(2, 6))
    n = data.draw(st.integers(1, 40))
    ignore = data.draw(st.sampled_from([None, 255, -1, 0, 1]))
    labels = st.lists(st.integers(0, num_classes - 1), min_size=n, max_size=n)
    predicted, true = torch.tensor(data.draw(labels)), torch.tensor(data.draw(labels))
    if ignore not in (None, 0, 1):
        true[data.draw(st.lists(st.integers(0, n - 1), max_size=n))] = ignore
    expected = literal_matrix(predicted, true, num_classes, ignore)

    dtypes = [torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64]
    p = predicted.to(data.draw(st.sampled_from([*dtypes, torch.uint8, torch.int8])))[None]
    t = true.to(data.draw(st.sampled_from(dtypes)))[None]
    if data.draw(st.booleans()):
        p = one_hot(predicted, num_classes, data.draw(st.sampled_from([torch.bool, torch.uint8, torch.float32])))
    found = confusion_matrix(p, t, num_classes, ignore)
    assert found.dtype == torch.int64
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("chunk", [1, 7, 64, 1000])
def test_chunks_do_not_show(monkeypatch, chunk):
    monkeypatch.setattr(confusion, "_CHUNK_ON_CPU", chunk)
    g = torch.Generator().manual_seed(chunk)
    predicted, true = (torch.randint(0, 4, (5, 8, 9), generator=g) for _ in range(2))
    expected = literal_matrix(predicted, true, 4)
    np.testing.assert_array_equal(confusion_matrix(predicted[None], true[None], 4), expected)
    np.testing.assert_array_equal(confusion_matrix(one_hot(predicted, 4), one_hot(true, 4), 4), expected)
    permuted = confusion_matrix(predicted.permute(2, 0, 1)[None], true.permute(2, 0, 1)[None], 4)
    np.testing.assert_array_equal(permuted, expected)


def test_metatensors_give_plain_numbers():
    image = MetaTensor(torch.tensor([[0, 1, 1]]), meta={"filename_or_obj": "case_1"})
    assert type(confusion_matrix(image, image, 2)) is torch.Tensor


@needs_shared
@pytest.mark.parametrize(
    ("true", "other"),
    [
        ("hippocampus_001", "hippocampus_001"),
        ("hippocampus_003", "hippocampus_001"),
        ("hippocampus_181", "hippocampus_011"),
    ],
)
def test_real_labels_equal_a_numpy_matrix(true, other):
    folder = SHARED / "data" / "hippocampus_mr" / "labels"
    t, p = (np.asarray(nibabel.load(folder / f"{name}.nii.gz").dataobj) for name in (true, other))
    size = np.minimum(t.shape, p.shape)
    t, p = (v[: size[0], : size[1], : size[2]] for v in (t, p))
    # numpy's own way, not a bincount of codes
    expected, *_ = np.histogram2d(t.ravel(), p.ravel(), bins=[np.arange(4)] * 2)
    found = confusion_matrix(torch.from_numpy(p.copy())[None], torch.from_numpy(t.copy())[None], 3)
    np.testing.assert_array_equal(found, expected.astype(np.int64))


@needs_shared
def test_many_classes_of_a_real_abdomen():
    label = np.asarray(nibabel.load(SHARED / "data" / "abdomen_ct" / "example_seg.nii.gz").dataobj).astype(np.int64)
    found = confusion_matrix(torch.from_numpy(label)[None], torch.from_numpy(label)[None], 118)
    np.testing.assert_array_equal(found.diagonal(), np.bincount(label.ravel(), minlength=118))
    assert found.sum() == label.size


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 5), st.integers(1, 60), st.integers(0, 2**31 - 1))
def test_iou_recall_precision_by_sets(classes, voxels, seed):
    predicted, true = np.random.RandomState(seed).randint(classes, size=(2, voxels)).astype(np.uint8)
    matrix = confusion_matrix(torch.as_tensor(predicted)[None], torch.as_tensor(true)[None], classes)
    found = [of(matrix.numpy(), absent=1.0) for of in (class_iou, class_recall, class_precision)]
    for k in range(classes):
        is_k, said = set(np.flatnonzero(true == k)), set(np.flatnonzero(predicted == k))
        assert found[0][k] == pytest.approx(len(is_k & said) / len(is_k | said) if is_k | said else 1)
        assert found[1][k] == pytest.approx(len(is_k & said) / len(is_k) if is_k else 1)
        assert found[2][k] == pytest.approx(len(is_k & said) / len(said) if said else 1)


@pytest.mark.parametrize("absent", [1.0, 0.0, np.nan])
def test_what_is_absent_is_an_argument_for_tensors_and_arrays(absent):
    matrix = torch.tensor([[8, 2, 0], [0, 0, 0], [0, 0, 0]])
    expected = {class_iou: [0.8, 0, absent], class_recall: [0.8, absent, absent], class_precision: [1, 0, absent]}
    for function, values in expected.items():
        tensor, array = function(matrix, absent), function(matrix.numpy(), absent)
        assert isinstance(tensor, torch.Tensor)
        assert isinstance(array, np.ndarray)
        np.testing.assert_allclose(tensor, values)
        np.testing.assert_array_equal(tensor, array)


class Constant(torch.nn.Module):
    """A network that answers with the same logits whatever it sees."""

    def __init__(self, logits):
        super().__init__()
        self.logits = logits

    def forward(self, images):
        return self.logits.expand(len(images), *self.logits.shape[1:])


def test_metric_controller_and_study_find_one_matrix():
    """Called with the same two arrays, far from symmetric, so that swapped arguments or axes would show."""
    predicted = torch.tensor([[0, 1, 2, 1], [1, 1, 2, 2], [0, 2, 0, 2], [1, 1, 1, 2]])
    true = torch.tensor([[0, 0, 0, 0], [0, 1, 1, 2], [0, 1, 0, 0], [2, 1, 0, 0]])
    expected = literal_matrix(predicted, true, 3)
    assert not (expected == expected.T).all()
    logits = one_hot(predicted, 3)[None]

    metric = DatasetIoU(3)
    metric(predicted[None, None], true[None, None])
    controller = RunningConfusion(3)
    controller.update(logits, true[None])
    case = Case("one", torch.zeros(1, 4, 4), true.to(torch.uint8))
    where = {"sample_size": (4, 4), "slice_axis": None, "device": torch.device("cpu")}
    study = evaluate(Constant(logits), {"argmax": ArgmaxDecoder()}, [case], [case], **where)
    _, curve_point = validation_curve_point(Constant(logits), lambda *_: torch.zeros(()), [case], **where)

    np.testing.assert_array_equal(confusion_matrix(predicted[None], true[None], 3), expected)
    np.testing.assert_array_equal(metric.confusion_matrix, expected)
    np.testing.assert_allclose(controller.matrix * true.numel(), expected)
    np.testing.assert_array_equal(study.confusion["argmax"], [expected])
    np.testing.assert_array_equal(study.validation_confusion["argmax"], expected)
    assert curve_point == pytest.approx(float(metric.aggregate())) == pytest.approx(float(controller.iou[1:].mean()))


@pytest.mark.parametrize("valid", [None, torch.ones(7, dtype=torch.bool)])
def test_no_voxel_is_a_matrix_of_zeros(valid):
    none = torch.zeros(0, dtype=torch.int64)
    assert count_pairs(none, none, 2, None if valid is None else valid[:0]).tolist() == [[0, 0], [0, 0]]


def test_iou_recall_precision_by_hand():
    matrix = torch.tensor([[8, 2, 0, 0], [1, 3, 0, 0], [4, 0, 0, 0], [0, 0, 0, 0]])
    expected = {class_iou: [8 / 15, 3 / 6, 0, np.nan], class_recall: [0.8, 0.75, 0, np.nan]}
    expected[class_precision] = [8 / 13, 3 / 5, np.nan, np.nan]
    for function, values in expected.items():
        np.testing.assert_allclose(function(matrix), values, rtol=1e-15)
        np.testing.assert_allclose(function(torch.stack([matrix, matrix])), [values, values], rtol=1e-15)


@pytest.mark.parametrize(
    ("predicted", "true", "options", "message"),
    [
        (
            [[0, 1, 255]],
            [[0, 1, 1]],
            {},
            r"y_pred: found .*\(s\) 255, expected class ids \[0, 1\]\. Logits",
        ),
        (
            [[0, 1, 1]],
            [[0, 255, -1]],
            {},
            r"y: found .*\(s\) -1, 255, expected class ids \[0, 1\]\. Pass ignore_index",
        ),
        (
            [[0, 1, 1]],
            [[0, 255, -4]],
            {"ignore_index": 255},
            r"y: found .*\(s\) -4, expected .* or the ignored value 255\.",
        ),
        (
            [[0, 255, 1]],
            [[0, 1, 1]],
            {"ignore_index": 255},
            r"y_pred: found .*\(s\) 255, expected class ids \[0, 1\]\. Logits",
        ),
        (
            [[*range(2, 12)]],
            [[0] * 10],
            {},
            r"found the label value\(s\) 2, 3, 4, 5, 6, 7, 8, 9, \.\.\. \(10 values in all\)",
        ),
        (
            [[0.2, 0.9]],
            [[0, 1]],
            {},
            r"y_pred: found values that are not integers: 0\.2, 0\.9, .*AsDiscrete",
        ),
        ([[0.0, 1.0]], [[0, np.nan]], {}, r"y: found values that are not integers: nan"),
        ([[0.0, np.inf]], [[0, 1]], {}, r"y_pred: found values that are not integers: inf"),
        ([[0.3, -0.2], [0.7, 1.2]], [[0, 1]], {}, r"y_pred has 2 channels but is not one-hot.*value 0\.3.*AsDiscrete"),
        ([[1, 1], [1, 0]], [[0, 1]], {}, r"y_pred has 2 channels but is not one-hot: it holds voxels of \[2\] classes"),
        ([[1, 0]], [[0, 1], [0, 0]], {}, r"y has 2 channels but is not one-hot: it holds voxels of \[0\] classes"),
        ([[0, 1]] * 3, [[0, 1]], {}, r"y_pred must have 1 channel \(class indices\) or 2 \(one-hot\).*shape \(3, 2\)"),
        ([0, 1], [[0, 1]], {}, r"y_pred must have 1 channel.*shape \(2,\)"),
        ([[0, 1]], [[0, 1, 1]], {}, r"same spatial shape, found \(2,\) and \(3,\)"),
        ([[[0, 1]]], [[[0], [1]]], {}, r"same spatial shape, found \(1, 2\) and \(2, 1\)"),
    ],
)
def test_refusals_name_what_was_found(predicted, true, options, message):
    with pytest.raises(ValueError, match=message):
        confusion_matrix(torch.tensor(predicted), torch.tensor(true), 2, **options)


def test_ignore_minus_one_does_not_swallow_255_of_uint8():
    true = torch.tensor([[0, 255]], dtype=torch.uint8)
    with pytest.raises(ValueError, match=r"y: found .*\(s\) 255, expected .* or the ignored value -1"):
        confusion_matrix(torch.zeros(1, 2), true, 2, ignore_index=-1)


def test_arrays_are_not_tensors():
    with pytest.raises(TypeError, match="y must be a tensor, found ndarray"):
        confusion_matrix(torch.zeros(1, 2), np.zeros((1, 2)), 2)
