"""What is the compiled kernels' own: kinds of labels, ends of tiles, wrong labels, extreme logits, memory."""

from __future__ import annotations

import pytest
import torch
from ops.memory import peak_allocation
from ops.overlap_ways import sums_and_gradient
from ops.ways import loss_and_gradient, terms

from monai_margincal.ops import cpu_launch, margin_calibration, margin_overlap


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch):
    monkeypatch.setattr(cpu_launch, "_LEAST_LOGITS", 0)
    monkeypatch.setattr(cpu_launch, "_LEAST_VOXELS", 1)


@pytest.fixture
def runs(monkeypatch):
    """How often the kernels were called."""
    found = []
    original = cpu_launch._share_out
    monkeypatch.setattr(cpu_launch, "_share_out", lambda *rest: (found.append(1), original(*rest))[1])
    return found


def assert_as_blockwise(logits, labels, values, **options):
    for compute in (loss_and_gradient, sums_and_gradient):
        rest = {name: one for name, one in options.items() if name != "reduction" or compute is loss_and_gradient}
        found = compute("compiled", logits, labels, values, **rest)
        torch.testing.assert_close(found, compute("eager", logits, labels, values, **rest), rtol=5e-6, atol=2e-6)


@pytest.mark.parametrize("classes", [1, 2, 3, 14, 33, 105])
@pytest.mark.parametrize("voxels", [1, 15, 64, 511, 1601])
def test_any_number_of_classes_and_voxels(classes, voxels, runs):
    logits, labels = torch.randn(2, classes, voxels) * 3, torch.randint(0, max(classes, 2), (2, voxels))
    labels[:, ::7] = 255
    values = terms(max(classes, 2))
    assert_as_blockwise(logits, labels, values, ignore_index=255)
    assert_as_blockwise(logits, labels, values, ignore_index=255, reduction="none", base_e=True)
    assert_as_blockwise(logits, labels.clamp(max=1), values, include_background=False, reduction="sum")
    assert runs


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("with_margin", [False, True])
def test_other_sums(squared, with_margin):
    logits, labels, values = torch.randn(2, 5, 700), torch.randint(0, 5, (2, 700)), terms(5)
    options = {"squared": squared, "with_margin": with_margin, "incoming": -2.5}
    found = sums_and_gradient("compiled", logits, labels, values, **options)
    expected = sums_and_gradient("eager", logits, labels, values, **options)
    torch.testing.assert_close(found, expected, rtol=5e-6, atol=2e-6)


def test_classes_that_were_not_annotated():
    logits, labels, values = torch.randn(4, 5, 700), torch.randint(0, 2, (4, 700)), terms(5)
    mask = torch.tensor([[1, 1, 0, 1, 0], [1, 1, 0, 0, 0], [1, 0, 0, 0, 0], [1, 1, 1, 1, 1]]).bool()
    labels[2] = 0
    logits[0, 2] = torch.nan
    assert_as_blockwise(logits, labels, values, class_mask=mask)
    assert_as_blockwise(logits, labels, values, class_mask=mask, reduction="none")


@pytest.mark.parametrize("dtype", cpu_launch._LABEL_KINDS)
def test_labels_are_read_as_they_are(dtype, runs):
    logits, labels, values = torch.randn(2, 2, 700), torch.randint(0, 2, (2, 700)), terms(2)
    expected = loss_and_gradient("compiled", logits, labels, values)
    runs.clear()
    found = loss_and_gradient("compiled", logits, labels.to(dtype), values)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert runs


@pytest.mark.parametrize("ignore_index", [255, -1, -2, -100, 1, 2**24 - 1, 2**40])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32, torch.int64, torch.float32, torch.float64])
def test_ignored_label(ignore_index, dtype):
    """255 is 255 in uint8, and -1 never equals 255."""
    logits, labels, values = torch.randn(1, 300, 700), torch.randint(0, 2, (1, 700)), terms(300)
    here = torch.tensor(ignore_index).to(dtype).to(torch.float64) == ignore_index
    labels = labels.to(dtype)
    if here:
        labels[0, 5:20] = ignore_index
    else:
        labels[0, 5:20] = 127  # the last of int8
    assert_as_blockwise(logits, labels, values, ignore_index=ignore_index)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(255, torch.uint8), (-4, torch.int64), (2**40, torch.int64), (2**32, torch.int64), (3, torch.float32)]
    + [(-1, torch.int16), (-2, torch.int32), (0.5, torch.float32), (torch.nan, torch.float64), (1e30, torch.float32)],
)
@pytest.mark.parametrize("ignore_index", [None, 200])
def test_wrong_labels_are_told_at_once(value, dtype, ignore_index, runs):
    labels = torch.zeros(1, 700).to(dtype)
    labels[0, 600] = value
    for function in (margin_calibration, margin_overlap):
        runs.clear()
        with pytest.raises(ValueError, match=r"target: found (the label value\(s\)|values that are not integers)"):
            function(torch.randn(1, 3, 700), labels, *terms(3), ignore_index=ignore_index)
        assert runs


def test_a_label_of_a_class_that_was_not_annotated():
    labels, mask = torch.tensor([[0, 1, 2], [2, 2, 2]]), torch.tensor([[True, True, False], [False, True, False]])
    with pytest.raises(ValueError, match=r"with the class\(es\) \[2\] in a case where class_mask says"):
        margin_overlap(torch.randn(2, 3, 3), labels, *terms(3), class_mask=mask)


@pytest.mark.parametrize("size", [1e30, torch.inf])
def test_huge_and_infinite_logits(size):
    signs = torch.tensor([[1.0, -1, 0, 1], [-1, 1, -1, 1], [1, 1, 1, 1]]).T[None]
    logits = torch.where(signs == 0, 0, signs * size)
    labels, values = torch.tensor([[0, 1, 2]]), [torch.ones(4)] * 4
    assert_as_blockwise(logits, labels, values)
    assert torch.isfinite(loss_and_gradient("compiled", logits, labels, values)[2]).all()


@pytest.mark.parametrize("channel", [0, 1, 2])
def test_nan_in_a_valid_voxel_is_not_hidden(channel):
    logits = torch.zeros(1, 3, 40)
    logits[0, channel, 1] = torch.nan
    labels = torch.zeros(1, 40, dtype=torch.long)
    loss, _, sums, _ = margin_overlap(logits, labels, *terms(3))
    assert loss.isnan()
    assert sums[0, 1].isnan().all()


@pytest.mark.parametrize("junk", [torch.nan, torch.inf, -torch.inf])
def test_an_ignored_voxel_changes_nothing(junk):
    logits, labels, values = torch.randn(2, 3, 30), torch.randint(0, 3, (2, 30)), terms(3)
    labels[:, 4] = 255
    for compute in (loss_and_gradient, sums_and_gradient):
        expected = compute("compiled", logits, labels, values, ignore_index=255)
        changed = logits.clone()
        changed[:, :, 4] = junk
        found = compute("compiled", changed, labels, values, ignore_index=255)
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
        assert (found[-1][:, :, 4] == 0).all()


def test_small_terms_are_not_rounded_away():
    """log(1 + t) for t below float32's resolution of 1."""
    logits = torch.tensor([[[40.0], [0.0], [-3.0]]])
    labels, values = torch.zeros(1, 1, dtype=torch.long), [torch.zeros(3), torch.zeros(3), torch.ones(3), torch.ones(3)]
    found, _, _ = loss_and_gradient("compiled", logits, labels, values)
    expected, _, _ = loss_and_gradient("eager", logits.double(), labels, values)
    assert found.item() == pytest.approx(expected.item(), rel=2e-6)


def test_views_are_left_to_the_blockwise_way(runs):
    base = torch.randn(2, 3, 8, 9, 10)
    for logits, taken in (
        (base[:, :, 1:7], True),
        (base[:1, 1:].expand(2, -1, -1, -1, -1), True),
        (base[:, :, :, :, 1:4], False),
        (base.contiguous(memory_format=torch.channels_last_3d), False),
    ):
        runs.clear()
        labels = torch.randint(0, 2, (2, *logits.shape[2:]))
        assert_as_blockwise(logits, labels, terms(logits.shape[1]))
        assert bool(runs) is taken


def test_memory_beside_the_logits():
    logits = torch.randn(1, 14, 64, 64, 64, requires_grad=True)
    labels, values = torch.randint(0, 14, (1, 64, 64, 64), dtype=torch.uint8), terms(14)

    def step():
        loss, _, sums, _ = margin_overlap(logits, labels, *values)
        (loss + sums[:, 0].sum()).backward()

    assert peak_allocation(step) <= 1.1 * logits.numel() * 4
