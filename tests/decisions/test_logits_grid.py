"""Labels brought to the grid of the logits: against what MONAI's own transforms do to both."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from monai.data import MetaTensor
from monai.transforms import Compose, Orientation, Spacing, SpatialCrop, SpatialPad

from monai_margincal.decisions.logits_grid import common_grid
from monai_margincal.decisions.votes import AllVotes, Votes

AXCODES = st.sampled_from(["RAS", "LPS", "PLS", "SAR", "IRA", "ASL"])


def affine(seed):
    """Of a slightly turned scan of unequal voxels."""
    generator = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(np.eye(3) + 0.1 * generator.standard_normal((3, 3)))
    found = np.eye(4)
    found[:3, :3] = turn @ np.diag([0.7, -0.8, 2.5])
    found[:3, 3] = generator.uniform(-200, 200, 3)
    return torch.from_numpy(found)


def case(seed, size=(7, 5, 6), classes=3):
    generator = torch.Generator().manual_seed(seed)
    place = affine(seed)
    logits = MetaTensor(torch.randn(classes, *size, generator=generator), affine=place)
    labels = MetaTensor(torch.randint(0, classes, size, generator=generator).to(torch.uint8), affine=place)
    return logits, labels


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 99), codes=AXCODES, start=st.tuples(*[st.integers(0, 2)] * 3), pad=st.integers(0, 2))
def test_turned_mirrored_cropped_and_padded(seed, codes, start, pad):
    """What a chain does to the logits alone is found, and undone for the label: the same voxels meet."""
    whole, labels = case(seed)
    size = [4 - first for first in start]
    chain = Compose(
        [
            Orientation(axcodes=codes, labels=None),
            SpatialCrop(roi_start=start, roi_end=[5 - 1] * 3),
            SpatialPad([length + pad for length in size]),
        ]
    )
    both = chain(MetaTensor(torch.cat([whole, labels[None].float() + 1]), affine=whole.affine))  # 0 is padding
    logits = MetaTensor(both[:-1].as_tensor(), affine=both.affine)
    inside, truth = common_grid(logits, labels, "case")
    there = both[-1].as_tensor() > 0
    if pad == 0:
        assert torch.equal(truth + 1, both[-1].as_tensor().to(torch.uint8))
        assert torch.equal(inside, both[:-1].as_tensor())
    # where there is padding it may lie over voxels of the label that the crop has cut off
    found = [(tuple(x.tolist()), int(y)) for x, y in zip(inside.flatten(1).T, truth.flatten(), strict=True)]
    expected = [
        (tuple(x.tolist()), int(y) - 1)
        for x, y in zip(both[:-1].as_tensor()[:, there].T, both[-1].as_tensor()[there], strict=True)
    ]
    assert set(expected) <= set(found)


def test_voxels_outside_of_the_crop_are_background_whatever_the_offsets():
    logits, labels = case(3)
    cropped = SpatialCrop(roi_start=[1, 0, 2], roi_end=[4, 5, 5])(logits)
    votes = Votes(3, ignore_index=2)
    votes.add(cropped, labels)
    full = torch.full_like(logits.as_tensor(), -100.0)
    full[0] = 0.0
    full[:, 1:4, :, 2:5] = cropped.as_tensor()
    for offsets in ([0.0, 0.0, 0.0], [0.0, 2.0, -1.0], [0.0, 4.0, 4.0]):
        decided = (full + torch.tensor(offsets).reshape(3, 1, 1, 1)).argmax(0)
        expected = np.zeros((3, 3), int)
        for true, found in zip(labels.flatten().tolist(), decided.flatten().tolist(), strict=True):
            if true != 2:
                expected[true, found] += 1
        np.testing.assert_array_equal(AllVotes(votes).matrices(lambda _, c, o=offsets: c.confusion(o))[0], expected)


def test_a_shift_below_half_a_voxel_is_rounding():
    logits, labels = case(0)
    moved = labels.affine.clone()
    moved[:3, 3] += 0.2 * moved[:3, 0]
    assert torch.equal(common_grid(logits, MetaTensor(labels.as_tensor(), affine=moved), "c")[1], labels.as_tensor())


def test_planes():
    logits = MetaTensor(torch.arange(12.0).reshape(1, 3, 4), affine=torch.eye(4))
    turned = torch.tensor([[0.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    labels = MetaTensor(torch.arange(12).reshape(3, 4).T.contiguous(), affine=turned)
    assert torch.equal(common_grid(logits, labels, "case")[1], torch.arange(12).reshape(3, 4))


def test_other_grids_are_refused():
    logits, labels = case(1)
    with pytest.raises(
        ValueError, match=r"a\.nii: found logits on a grid of other voxels than the label's, expected the"
    ):
        common_grid(Spacing([1.0, 1.0, 1.0])(logits), labels, "a.nii")
    away = logits.affine.clone()
    away[:3, 3] += 100 * away[:3, 0]
    with pytest.raises(ValueError, match=r"a\.nii: found logits that lie outside of the label"):
        common_grid(MetaTensor(logits.as_tensor(), affine=away), labels, "a.nii")
