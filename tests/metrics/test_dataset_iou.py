"""DatasetIoU: the paper's IoU over a set, in every form of input and with every empty case."""

from __future__ import annotations

import copy
import pickle

import nibabel
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from monai.data import MetaTensor, decollate_batch
from monai.metrics import CumulativeIterationMetric
from monai.transforms import AsDiscrete
from shared import SHARED, needs_shared

from monai_margincal.metrics import DatasetIoU


def literal_iou(predicted: list[np.ndarray], true: list[np.ndarray], k: int, ignore_index=None) -> float:
    """Intersection and union of sets of voxels (image, place), 0/0 = 1."""
    a, b = set(), set()
    for i, (p, t) in enumerate(zip(predicted, true, strict=True)):
        for place, (pv, tv) in enumerate(zip(np.ravel(p).tolist(), np.ravel(t).tolist(), strict=True)):
            if tv == ignore_index:
                continue
            if pv == k:
                a.add((i, place))
            if tv == k:
                b.add((i, place))
    return len(a & b) / len(a | b) if a | b else 1.0


def counted(predicted, true, **options) -> DatasetIoU:
    metric = DatasetIoU(**options)
    metric(torch.as_tensor(predicted)[None, None], torch.as_tensor(true)[None, None])
    return metric


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_equals_sets_of_voxels(data):
    num_classes = data.draw(st.integers(2, 5))
    ignore = data.draw(st.sampled_from([None, 255]))
    metric = DatasetIoU(num_classes, include_background=data.draw(st.booleans()), ignore_index=ignore)
    predicted, true = [], []
    for _ in range(data.draw(st.integers(1, 4))):
        n = data.draw(st.integers(1, 12))
        labels = st.lists(st.integers(0, num_classes - 1), min_size=n, max_size=n)
        p, t = (torch.tensor(data.draw(labels)) for _ in range(2))
        if ignore is not None:
            t[data.draw(st.lists(st.integers(0, n - 1), max_size=n))] = ignore
        predicted.append(p.numpy())
        true.append(t.numpy())
        metric([p[None]], [t[None]])
    expected = [literal_iou(predicted, true, k, ignore) for k in range(num_classes)]
    np.testing.assert_allclose(metric.per_class, expected, rtol=1e-14)
    first = 0 if metric.include_background else 1
    assert metric.aggregate().item() == pytest.approx(np.mean(expected[first:]), abs=1e-14)
    seen = set()
    for p, t in zip(predicted, true, strict=True):
        seen |= set(t[t != ignore].tolist()) | set(p[t != ignore].tolist())
    assert set(metric.absent_classes) == set(range(first, num_classes)) - seen


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**31), cuts=st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_order_and_batching_change_nothing(seed, cuts):
    g = torch.Generator().manual_seed(seed)
    images = sum(cuts)
    p, t = (torch.randint(0, 3, (images, 1, 4, 3), generator=g) for _ in range(2))
    whole, parts = DatasetIoU(3), DatasetIoU(3)
    whole(p, t)
    order = torch.randperm(images, generator=g)
    for part in order.split(cuts):
        parts(p[part], t[part])
    assert torch.equal(whole.confusion_matrix, parts.confusion_matrix)
    assert torch.equal(whole.image_counts, parts.image_counts)
    torch.testing.assert_close(whole.get_buffer()[order], parts.get_buffer(), rtol=0, atol=0, equal_nan=True)
    assert len(parts) == images


def test_every_form_of_input_gives_the_same():
    g = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 4, 5, 6, 2, generator=g)
    true = torch.randint(0, 4, (3, 1, 5, 6, 2), generator=g)
    indices = logits.argmax(1, keepdim=True)
    discrete, to_one_hot = AsDiscrete(argmax=True, to_onehot=4), AsDiscrete(to_onehot=4)
    hot_p = torch.stack([discrete(x) for x in logits])
    hot_t = torch.stack([to_one_hot(x) for x in true])
    forms = [
        (indices, true),
        (hot_p, hot_t),
        (hot_p, true),
        (indices.to(torch.uint8), true.float()),
        (MetaTensor(hot_p), MetaTensor(true)),
        (list(hot_p), list(true)),
        (tuple(indices), list(hot_t)),
        (decollate_batch(MetaTensor(hot_p)), decollate_batch(MetaTensor(true))),
        (hot_p.bool(), hot_t.to(torch.int8)),
    ]
    expected = np.zeros((4, 4), dtype=np.int64)
    np.add.at(expected, (true.numpy().ravel(), indices.numpy().ravel()), 1)
    for p, t in forms:
        metric = DatasetIoU(4)
        returned = metric(p, t)
        np.testing.assert_array_equal(metric.confusion_matrix, expected)
        assert returned.shape == (3, 4, 4)
        assert torch.equal(returned.sum(0), metric.confusion_matrix)
        assert metric.confusion_matrix.dtype == torch.int64


@pytest.mark.parametrize(
    ("predicted", "true", "one", "exclude"),
    [
        ([0, 0, 0, 0], [0, 0, 0, 0], 1.0, np.nan),
        ([0, 1, 0, 0], [0, 0, 0, 0], 0.0, 0.0),
        ([0, 0, 0, 0], [0, 1, 1, 0], 0.0, 0.0),
        ([0, 1, 0, 0], [0, 1, 1, 0], 0.5, 0.5),
    ],
    ids=["both empty", "truth empty", "prediction empty", "neither empty"],
)
def test_four_empty_cases(predicted, true, one, exclude):
    """Project-MONAI/MONAI#7504, #4160, #8098: an empty truth gives 0, NaN or 1 by settings; here by two stated rules."""
    for absent, expected in (("one", one), ("exclude", exclude)):
        metric = counted(predicted, true, num_classes=2, absent=absent)
        assert metric.aggregate().item() == pytest.approx(expected, nan_ok=True)
        assert metric.per_class[1].item() == pytest.approx(expected, nan_ok=True)
        assert metric.absent_classes == ((1,) if one == 1.0 else ())


def test_an_image_without_the_class_does_not_move_its_iou():
    """LovaszSoftmax 20: absent classes made the mean .003 instead of .76."""
    metric = counted([0, 1, 1, 1], [0, 0, 1, 1], num_classes=2)
    before = metric.aggregate()
    metric(torch.zeros(5, 1, 9), torch.zeros(5, 1, 9))
    assert metric.aggregate() == before == pytest.approx(2 / 3)


@pytest.mark.parametrize("ignore_index", [255, -1, 7])
def test_ignored_voxels_leave_the_metric_of_the_rest(ignore_index):
    """torchmetrics 2747: 255 in the labels crashed the IoU."""
    g = torch.Generator().manual_seed(1)
    p, t = (torch.randint(0, 3, (1, 1, 200), generator=g) for _ in range(2))
    marked = t.clone()
    hidden = torch.rand(t.shape, generator=g) < 0.3
    marked[hidden] = ignore_index
    whole, rest = DatasetIoU(3, ignore_index=ignore_index), DatasetIoU(3)
    whole(p, marked)
    rest(p[~hidden][None, None], t[~hidden][None, None])
    assert torch.equal(whole.confusion_matrix, rest.confusion_matrix)
    whole.reset()
    whole(torch.where(hidden, ignore_index, p), marked)  # a masked prediction is as good
    assert torch.equal(whole.confusion_matrix, rest.confusion_matrix)


def test_an_ignored_class_takes_no_part_in_the_mean():
    metric = counted([0, 1, 2, 1, 2], [0, 1, 2, 2, 1], num_classes=3, ignore_index=2)
    assert metric.evaluated_classes == (1,)
    np.testing.assert_array_equal(metric.confusion_matrix, [[1, 0, 0], [0, 1, 1], [0, 0, 0]])
    np.testing.assert_array_equal(metric.per_class, [1.0, 0.5, np.nan])
    assert metric.aggregate() == 0.5


def test_all_ignored_is_the_empty_set():
    metric = counted([0, 1], [255, 255], num_classes=2, ignore_index=255)
    assert metric.aggregate() == 1.0
    assert metric.absent_classes == (1,)
    exclude = counted([0, 1], [255, 255], num_classes=2, ignore_index=255, absent="exclude")
    assert torch.isnan(exclude.aggregate())


def test_how_much_each_class_rests_on():
    """nnUNet 1700, 2438: how many cases went into the average of a class is part of the answer."""
    metric = DatasetIoU(4, absent="exclude")
    metric([torch.tensor([[0, 1]]), torch.tensor([[0, 0]])], [torch.tensor([[0, 1]]), torch.tensor([[2, 0]])])
    metric([torch.tensor([[1, 1]])], [torch.tensor([[0, 1]])])
    assert metric.image_counts.tolist() == [3, 2, 1, 0]
    assert metric.absent_classes == (3,)
    assert metric.aggregate().item() == pytest.approx((2 / 3 + 0) / 2)
    rows = metric.get_buffer()
    np.testing.assert_allclose(
        rows,
        [[np.nan, 1.0, np.nan, np.nan], [np.nan, np.nan, 0.0, np.nan], [np.nan, 0.5, np.nan, np.nan]],
    )
    assert rows.isfinite().sum(0).tolist() == [0, 2, 1, 0]


def test_recall_and_precision_of_absent_classes():
    options = {"num_classes": 3, "include_background": True}
    one, exclude = (counted([0, 0, 1, 1], [0, 0, 0, 0], absent=absent, **options) for absent in ("one", "exclude"))
    np.testing.assert_array_equal(one.recall, [0.5, 1.0, 1.0])
    np.testing.assert_array_equal(one.precision, [1.0, 0.0, 1.0])
    np.testing.assert_array_equal(exclude.recall, [0.5, np.nan, np.nan])
    np.testing.assert_array_equal(exclude.precision, [1.0, 0.0, np.nan])


def test_background_counts_only_on_request():
    arguments = ([0, 0, 0, 1], [0, 0, 1, 1])
    without, with_it = (counted(*arguments, num_classes=2, include_background=flag) for flag in (False, True))
    assert without.aggregate() == without.per_class[1] == 0.5
    assert with_it.aggregate().item() == pytest.approx((2 / 3 + 0.5) / 2)
    assert torch.equal(without.per_class, with_it.per_class)


def test_counts_beyond_float_precision():
    """2**24 + 1 voxels are no number of float32, 2**53 + 1 none of float64; the matrix holds them."""
    metric = DatasetIoU(2)
    for count in (2**24 + 1, 2**53 + 1):
        metric.append(torch.tensor([[count, 0], [0, 1]]))
    assert metric.confusion_matrix[0, 0].item() == 2**24 + 1 + 2**53 + 1


def test_reset_forgets_and_results_are_copies():
    metric = counted([0, 1], [1, 1], num_classes=2)
    metric.confusion_matrix.zero_()
    metric.image_counts.zero_()
    metric.get_buffer().zero_()
    assert metric.aggregate() == 0.5
    assert metric.image_counts.tolist() == [1, 1]
    metric.reset()
    assert len(metric) == 0
    metric(torch.ones(1, 1, 2), torch.ones(1, 1, 2))
    assert metric.aggregate() == 1.0
    np.testing.assert_array_equal(metric.confusion_matrix, [[0, 0], [0, 2]])


def test_results_may_be_asked_for_between_batches():
    metric = counted([0, 1], [1, 1], num_classes=2)
    assert metric.aggregate() == 0.5
    metric(torch.ones(1, 1, 2), torch.ones(1, 1, 2))
    assert metric.aggregate() == 0.75


def test_copies_and_pickles_go_on_by_themselves():
    metric = counted([0, 1], [1, 1], num_classes=2)
    for other in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):
        other(torch.ones(1, 1, 2), torch.ones(1, 1, 2))
        assert other.aggregate() == 0.75
    assert metric.aggregate() == 0.5


def test_memory_is_a_matrix_and_a_row_per_image():
    """torchmetrics 112: gathering raw predictions exhausted the memory."""
    metric = DatasetIoU(3)
    for _ in range(4):
        metric(torch.zeros(2, 1, 64, 64), torch.zeros(2, 1, 64, 64))
    kept = sum(row.numel() for row in metric._buffers[0]) + metric._matrix.numel() + metric._image_counts.numel()
    assert kept == 8 * 3 + 9 + 3


def test_a_failed_call_counts_nothing():
    metric = counted([0, 1], [1, 1], num_classes=2)
    with pytest.raises(ValueError, match=r"y: found the label value\(s\) 5, expected class ids \[0, 1\]"):
        metric([torch.ones(1, 2), torch.ones(1, 2)], [torch.ones(1, 2), torch.full((1, 2), 5)])
    assert len(metric) == 1
    assert metric.aggregate() == 0.5


def test_an_empty_batch_counts_nothing():
    metric = counted([0, 1], [1, 1], num_classes=2)
    metric([], [])
    metric(torch.zeros(0, 1, 4), torch.zeros(0, 1, 4))
    assert len(metric) == 1


def test_is_a_monai_metric_with_a_readable_repr():
    metric = DatasetIoU(3, ignore_index=255)
    assert isinstance(metric, CumulativeIterationMetric)
    assert repr(metric) == "DatasetIoU(num_classes=3, include_background=False, ignore_index=255, absent='one')"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_classes": 1}, r"num_classes must be a whole number of at least 2.*found 1"),
        ({"num_classes": 2.5}, r"found 2\.5"),
        ({"num_classes": True}, r"found True"),
        ({"num_classes": 2, "absent": "zero"}, r"absent must be one of \('one', 'exclude'\), found 'zero'"),
        ({"num_classes": 2, "ignore_index": 1}, r"no class is left to evaluate: num_classes=2.*ignore_index=1"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        DatasetIoU(**options)


ONE = torch.zeros(1, 1, 4)


@pytest.mark.parametrize(
    ("y_pred", "y", "error", "message"),
    [
        (ONE, torch.zeros(2, 1, 4), ValueError, r"same length, found shapes \(1, 1, 4\) and \(2, 1, 4\)"),
        ([ONE[0]], [ONE[0], ONE[0]], ValueError, r"same number of images, found list of 1 and list of 2"),
        ([ONE[0]], torch.zeros(2, 1, 4), ValueError, r"found list of 1 and Tensor of 2"),
        ([ONE[0]], None, ValueError, r"found list of 1 and NoneType"),
        (ONE, None, TypeError, r"needs the ground truth y as a tensor, found NoneType"),
        (torch.zeros(4), ONE, ValueError, r"batches \(B, channels, \.\.\.\)"),
        ([np.zeros((1, 4))], [ONE[0]], TypeError, r"y_pred must be a tensor, found ndarray"),
        (torch.rand(1, 2, 4), ONE, ValueError, r"y_pred has 2 channels but is not one-hot.*AsDiscrete\(argmax=True\)"),
        (torch.zeros(1, 5, 4), ONE, ValueError, r"1 channel \(class indices\) or 2 \(one-hot\).*\(5, 4\)"),
    ],
)
def test_bad_calls_are_refused(y_pred, y, error, message):
    with pytest.raises(error, match=message):
        DatasetIoU(2)(y_pred, y)


@pytest.mark.parametrize(
    "question", ["aggregate", "per_class", "recall", "precision", "confusion_matrix", "absent_classes"]
)
def test_nothing_counted_is_an_error(question):
    metric = DatasetIoU(2)
    with pytest.raises(ValueError, match=r"DatasetIoU\(num_classes=2.*has counted no image"):
        metric.aggregate() if question == "aggregate" else getattr(metric, question)


@pytest.mark.parametrize(
    "matrices", [torch.zeros(1, 3, 3, dtype=torch.int64), torch.zeros(1, 2, 2), torch.zeros(2, 2, dtype=torch.int64)]
)
def test_only_confusion_matrices_can_be_added(matrices):
    with pytest.raises(ValueError, match=r"whole-number confusion matrices of shape \(B, 2, 2\), found"):
        DatasetIoU(2).extend(matrices)


@needs_shared
def test_real_cases_equal_one_numpy_matrix():
    """Six hippocampi, predictions shifted by a voxel: one matrix over all voxels, not a mean of cases."""
    metric = DatasetIoU(3)
    matrix = np.zeros((3, 3), dtype=np.int64)
    for number in ("001", "003", "004", "006", "007", "008"):
        file = SHARED / "data" / "hippocampus_mr" / "labels" / f"hippocampus_{number}.nii.gz"
        true = np.asarray(nibabel.load(file).dataobj).astype(np.uint8)
        predicted = np.roll(true, 1, axis=0)
        for t in range(3):
            for p in range(3):
                matrix[t, p] += np.count_nonzero((true == t) & (predicted == p))
        metric([torch.from_numpy(predicted)[None]], [torch.from_numpy(true)[None]])
    np.testing.assert_array_equal(metric.confusion_matrix, matrix)
    iou = np.diag(matrix) / (matrix.sum(0) + matrix.sum(1) - np.diag(matrix))
    np.testing.assert_allclose(metric.per_class, iou, rtol=1e-15)
    np.testing.assert_allclose(metric.recall, np.diag(matrix) / matrix.sum(1), rtol=1e-15)
    np.testing.assert_allclose(metric.precision, np.diag(matrix) / matrix.sum(0), rtol=1e-15)
    assert metric.aggregate().item() == pytest.approx(iou[1:].mean(), abs=1e-15)
