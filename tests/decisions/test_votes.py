"""Cases that are looked at once: in slabs, in any layout of memory, thinned at any moment."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from monai_margincal import fit_class_offsets
from monai_margincal.decisions import case_slabs as slabs
from monai_margincal.decisions import votes as collected
from monai_margincal.decisions.votes import AllVotes, Votes

OFFSETS = ([0.0, 0.0, 0.0], [0.0, 1.3, -0.7], [0.0, -4.0, 4.0])


def case(seed=0, size=(9, 8, 7)):
    generator = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(3, *size, generator=generator), torch.randint(0, 3, size, generator=generator)


def matrices(*cases, **options):
    votes = Votes(3, **options)
    for logits, labels in cases:
        votes.add(logits, labels)
    found = AllVotes(votes)
    return np.stack([found.matrices(lambda _, case, o=offsets: case.confusion(o)) for offsets in OFFSETS])


@pytest.mark.parametrize("slab", [1, 5, 60, 10**6])
@pytest.mark.parametrize("layout", [(0, 1, 2, 3), (3, 0, 1, 2), (2, 0, 3, 1)])
def test_slabs_and_layouts_change_nothing(slab, layout, monkeypatch):
    """Slices first in memory is what `VolumeSliceInferer` gives."""
    logits, labels = case()
    expected = matrices((logits, labels))
    monkeypatch.setattr(slabs, "_SLAB", slab)
    shown = logits.permute(layout).contiguous().permute(*np.argsort(layout).tolist())
    assert torch.equal(shown, logits)
    np.testing.assert_array_equal(matrices((shown, labels)), expected)
    assert expected[0].sum() == labels.numel()


@pytest.mark.parametrize("slab", [3, 10**6])
def test_thinned_while_looking_is_thinned_afterwards(slab, monkeypatch):
    """Whoever sees fewer cases at first, such as one process of several, must end with the same voxels."""
    found = [case(seed) for seed in range(3)]
    whole = Votes(3)
    for logits, labels in found:
        whole.add(logits, labels)
    whole.thin()
    whole.thin()
    expected = [one.confusion(OFFSETS[1]) for one in whole.cases]
    monkeypatch.setattr(slabs, "_SLAB", slab)
    monkeypatch.setattr(collected, "MOST_BYTES", whole.num_bytes + 20)
    early = Votes(3)
    for logits, labels in found:
        early.add(logits, labels)
    assert early.weight == 4
    for one, matrix in zip(early.cases, expected, strict=True):
        np.testing.assert_array_equal(one.confusion(OFFSETS[1]), matrix)


def test_half_precision_and_one_logit():
    logits, labels = case()
    half = logits.half()
    np.testing.assert_array_equal(matrices((half, labels)), matrices((half.float(), labels)))
    votes = Votes(2)
    votes.add(half[1:2], labels.clamp(max=1))
    both = Votes(2)
    both.add(torch.cat([torch.zeros_like(half[:1]), half[1:2]]), labels.clamp(max=1))
    for offsets in ([0.0, 0.0], [0.0, 0.4]):
        np.testing.assert_array_equal(*(side.cases[0].confusion(offsets) for side in (votes, both)))


def test_a_case_that_a_sampler_repeats_counts_once():
    votes = Votes(3)
    for seed, name in ((1, "b"), (0, "a"), (1, "b"), (2, "b")):
        votes.add(*case(seed), name=name)
    found = AllVotes(votes).matrices(lambda _, one: one.confusion(OFFSETS[0]))
    named = Votes(3)
    for seed in range(3):
        named.add(*case(seed), name=str(seed))
    expected = AllVotes(named).matrices(lambda _, one: one.confusion(OFFSETS[0]))
    assert len(found) == 3
    np.testing.assert_array_equal(found[0], expected[0])  # by name
    np.testing.assert_array_equal(found[1:].sum(0), expected[1:].sum(0))


def test_under_another_default_device():
    found = [case(seed) for seed in range(3)]
    expected = fit_class_offsets(found, 3, progress=False)
    with torch.device("meta"):
        assert fit_class_offsets(found, 3, progress=False) == expected
        decided = expected(found[0][0], dim=0)
    assert torch.equal(decided, expected(found[0][0], dim=0))


def test_logits_that_belong_to_a_training():
    logits, labels = case()
    np.testing.assert_array_equal(matrices((logits.requires_grad_(), labels)), matrices(case()))
