"""Batches depend on seed and step alone, and hold what the cases hold."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from monai.transforms import RandFlipd

from monai_margincal.experiments.cases import Case
from monai_margincal.experiments.sample_stream import SampleStream, fit_to_size


def _cases(shape=(6, 5, 4), number=3) -> list[Case]:
    # every voxel of every case is its own number, so that nothing can be mixed up
    found = []
    for i in range(number):
        values = torch.arange(int(np.prod(shape))).reshape(shape) + 1000 * i
        found.append(Case(str(i), values[None].float(), (values % 3).to(torch.uint8)))
    return found


def test_an_epoch_shows_every_slice_once():
    stream = SampleStream(_cases(), (6, 5), 4, seed=0, slice_axis=2)
    assert len(stream) == 12
    firsts = [float(image[0, 0, 0]) for step in range(3) for image in stream.batch(step)[0]]
    assert sorted(firsts) == sorted(1000 * i + z for i in range(3) for z in range(4))
    again = [float(image[0, 0, 0]) for step in range(3, 6) for image in stream.batch(step)[0]]
    assert sorted(again) == sorted(firsts)
    assert again != firsts


def test_image_and_label_stay_together_through_crop_and_flip():
    augmentation = RandFlipd(keys=["image", "label"], prob=0.5, spatial_axis=0)
    stream = SampleStream(_cases((9, 8, 2)), (5, 4), 6, seed=1, slice_axis=2, augmentation=augmentation)
    images, labels = stream.batch(0)
    assert images.shape == (6, 1, 5, 4)
    assert labels.shape == (6, 1, 5, 4)
    assert labels.dtype == torch.int64
    assert torch.equal(images.long() % 3, labels)


def test_a_batch_is_the_same_whenever_it_is_asked_for():
    augmentation = RandFlipd(keys=["image", "label"], prob=0.5)
    first, second = (SampleStream(_cases(), (4, 4, 4), 2, 7, None, augmentation) for _ in range(2))
    for step in (5, 0, 3):
        first.batch(step)
    assert torch.equal(first.batch(2)[0], second.batch(2)[0])
    other = SampleStream(_cases(), (4, 4, 4), 2, 8, None, augmentation)
    assert not torch.equal(other.batch(2)[0], second.batch(2)[0])


def test_small_images_grow_evenly():
    image, label = torch.ones(1, 3, 2), torch.ones(3, 2, dtype=torch.uint8)
    image, label = fit_to_size(image, label, (4, 5), np.random.RandomState(0))
    assert image.shape == (1, 4, 5)
    assert bool((image == 1).all())  # edge values
    assert label.tolist() == [[0, 1, 1, 0, 0], [0, 1, 1, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 0, 0]]


def test_refuses_sizes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"sample_size \[4, 4\] and slice_axis None for images of 3 dimensions"):
        SampleStream(_cases(), (4, 4), 1, 0)
