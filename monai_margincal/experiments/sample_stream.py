"""Training batches that depend only on the seed and the step, so that every objective of a seed sees the same data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from .cases import Case

__all__ = ["SampleStream", "fit_to_size"]


class SampleStream:
    """Batches of slices or volumes: batch ``i`` is the same whenever it is asked for.

    Every epoch visits all samples once, in an order drawn by the seed. A sample that is smaller than the sample size is extended
    evenly at both ends (image: edge values, label: background); a larger one is cropped at a random place.

    Args:
        cases: training cases.
        sample_size: spatial size of a sample.
        batch_size: samples per batch.
        seed: seed of the order, crops and augmentation.
        slice_axis: spatial axis whose slices are the samples, or None: samples are whole images.
        augmentation: random MONAI transform of {"image", "label"}, or None.

    Raises:
        ValueError: sizes or axes do not fit the images.
    """

    def __init__(
        self,
        cases: Sequence[Case],
        sample_size: Sequence[int],
        batch_size: int,
        seed: int,
        slice_axis: int | None = None,
        augmentation: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        dims = cases[0].label.ndim - (slice_axis is not None)
        if len(sample_size) != dims or (slice_axis is not None and not 0 <= slice_axis <= dims):
            raise ValueError(
                f"found sample_size {list(sample_size)} and slice_axis {slice_axis} for images of {cases[0].label.ndim} "
                f"dimensions: expected {dims} numbers and an existing axis"
            )
        self.cases = cases
        self.sample_size = tuple(sample_size)
        self.batch_size = batch_size
        self.seed = seed
        self.slice_axis = slice_axis
        self.augmentation = augmentation
        self._index = [
            (number, position)
            for number, case in enumerate(cases)
            for position in range(1 if slice_axis is None else case.label.shape[slice_axis])
        ]
        self._epoch = (-1, np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        """Samples per epoch."""
        return len(self._index)

    def batch(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Images float32 (B, C, *sample_size) and labels int64 (B, 1, *sample_size) of one step."""
        samples = [self._sample(step * self.batch_size + i) for i in range(self.batch_size)]
        return torch.stack([image for image, _ in samples]), torch.stack([label for _, label in samples]).long()[
            :, None
        ]

    def _sample(self, position: int) -> tuple[torch.Tensor, torch.Tensor]:
        epoch, place = divmod(position, len(self))
        if self._epoch[0] != epoch:
            self._epoch = (epoch, np.random.RandomState([self.seed, 1, epoch]).permutation(len(self)))
        number, index = self._index[self._epoch[1][place]]
        image, label = self.cases[number].image, self.cases[number].label
        if self.slice_axis is not None:
            image, label = image.select(self.slice_axis + 1, index), label.select(self.slice_axis, index)
        random = np.random.RandomState([self.seed, 2, position])
        image, label = fit_to_size(image, label, self.sample_size, random)
        if self.augmentation is not None:
            self.augmentation.set_random_state(state=random)  # type: ignore[attr-defined]
            data = self.augmentation({"image": image, "label": label[None]})
            image = torch.as_tensor(data["image"]).as_subclass(torch.Tensor)
            label = torch.as_tensor(data["label"]).as_subclass(torch.Tensor)[0]
        return image, label


def fit_to_size(
    image: torch.Tensor, label: torch.Tensor, size: Sequence[int], random: np.random.RandomState
) -> tuple[torch.Tensor, torch.Tensor]:
    """Crop at random, then extend evenly at both ends.

    Args:
        image: (C, *spatial).
        label: (*spatial).
        size: wanted spatial size.
        random: the random numbers that place the crop.
    """
    padding: list[int] = []
    for axis, wanted in enumerate(size):
        found = label.shape[axis]
        if found > wanted:
            start = int(random.randint(found - wanted + 1))
            image, label = image.narrow(axis + 1, start, wanted), label.narrow(axis, start, wanted)
        missing = max(0, wanted - found)
        padding = [missing // 2, missing - missing // 2, *padding]  # torch counts axes from the last one
    if any(padding):
        image = functional.pad(image[None], padding, mode="replicate")[0]
        label = functional.pad(label, padding)
    return image, label
