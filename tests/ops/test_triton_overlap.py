"""What is the fused kernels' own: every size at which they change their plan, wrong labels, numerics, memory."""

from __future__ import annotations

import pytest
import torch
from ops.memory import peak_allocation
from ops.overlap_ways import sums_and_gradient
from ops.ways import terms

from monai_margincal.ops import margin_overlap, triton_launch


def assert_as_eager(logits, labels, values, **options):
    options["incoming"] = -2.5
    found = sums_and_gradient("triton", logits, labels, values, **options)
    torch.testing.assert_close(
        found, sums_and_gradient("eager", logits, labels, values, **options), rtol=5e-6, atol=3e-6
    )


@pytest.mark.parametrize(
    ("classes", "options"),
    [
        (1, {"squared": True}),
        (2, {"base_e": True, "include_background": False}),
        (3, {"squared": True, "reduction": "sum"}),
        (9, {"with_margin": False}),
        (33, {"with_margin": False, "squared": True}),
        (105, {}),
    ],
)
def test_any_number_of_classes(classes, options):
    logits, labels = torch.randn(2, classes, 601) * 3, torch.randint(0, max(classes, 2), (2, 601), dtype=torch.uint8)
    labels[:, ::7] = 255
    assert_as_eager(logits, labels, terms(max(classes, 2)), ignore_index=255, **options)


@pytest.mark.parametrize("shape", [(7, 3), (5, 3, 2, 2), (3, 3, 5, 4, 3)])
@pytest.mark.parametrize("masked", [False, True])
def test_few_voxels_per_case(shape, masked):
    """Each case has sums of its own, however few its voxels."""
    logits, labels = torch.randn(shape), torch.randint(0, 2, (shape[0], *shape[2:]))
    mask = torch.rand(shape[:2]) < 0.5
    mask[1:, :2] = True
    labels[0] = 0
    assert_as_eager(logits, labels, terms(shape[1]), class_mask=mask if masked else None)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype):
    logits, labels = (torch.randn(2, 5, 70) * 4).to(dtype), torch.randint(0, 5, (2, 70))
    values = terms(5)
    expected = sums_and_gradient("eager", logits, labels, values, incoming=64.0)
    found = sums_and_gradient("triton", logits, labels, values, incoming=64.0)
    torch.testing.assert_close(found[:4], expected[:4], rtol=2e-6, atol=1e-6)
    torch.testing.assert_close(found[4], expected[4], rtol=8e-3, atol=1e-3)


def test_wrong_labels_surface_with_the_next_call():
    labels, values = torch.zeros(1, 30, dtype=torch.long), terms(3)
    wrong = labels.clone()
    wrong[0, 5] = 7
    for with_margin in (True, False):
        loss, valid, sums, counted = margin_overlap(
            torch.randn(1, 3, 30), wrong, *values, backend="triton", with_margin=with_margin
        )
        assert loss.isnan()
        assert valid == counted == 29
        assert torch.isfinite(sums).all()
        with pytest.raises(ValueError, match=r"earlier call on cpu: found the label value\(s\) 7 in 1 voxel"):
            margin_overlap(torch.randn(1, 3, 30), labels, *values, backend="triton")
    triton_launch.raise_for_undeclared_labels()


@pytest.mark.parametrize("junk", [torch.nan, torch.inf])
def test_an_ignored_voxel_changes_nothing(junk):
    logits, labels, values = torch.randn(2, 3, 30), torch.randint(0, 3, (2, 30)), terms(3)
    labels[:, 4] = 255
    expected = sums_and_gradient("triton", logits, labels, values, ignore_index=255)
    logits[:, :, 4] = junk
    found = sums_and_gradient("triton", logits, labels, values, ignore_index=255)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert (found[4][:, :, 4] == 0).all()


def test_nan_in_a_valid_voxel_is_not_hidden():
    logits = torch.zeros(1, 3, 4)
    logits[0, 1, 1] = torch.nan
    loss, _, sums, _ = margin_overlap(logits, torch.zeros(1, 4, dtype=torch.long), *terms(3), backend="triton")
    assert loss.isnan()
    assert sums[0, 1].isnan().all()


def test_memory_beside_the_logits():
    logits = torch.randn(1, 4, 32, 32, 4, requires_grad=True)
    labels, values = torch.randint(0, 4, (1, 32, 32, 4), dtype=torch.uint8), terms(4)

    def step():
        loss, _, sums, _ = margin_overlap(logits, labels, *values, backend="triton")
        (loss + sums[:, 0].sum()).backward()

    assert peak_allocation(step) <= 1.1 * logits.numel() * 4
