"""Random light and colours for frames that have been normalised already, so that what is deterministic can be cached."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from monai.config import KeysCollection
from monai.transforms import MapTransform, RandomizableTransform

#: luma and the two axes of colour of the NTSC standard, from red, green and blue
_TO_YIQ = np.array([[0.299, 0.587, 0.114], [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]])


class RandColourJitterd(RandomizableTransform, MapTransform):
    """Change brightness, contrast, saturation and hue of an RGB image at random.

    In this order: every channel times a factor; the distance of every pixel to the mean grey of the image times a factor; the
    distance of every pixel to its own grey times a factor; its colour turned around the axis of greys. Factors are drawn between
    1 minus and 1 plus the argument, the angle from minus to plus the argument, in turns. The result is clipped to what a picture
    can show, 0 to 1 before the normalisation.

    Args:
        keys: keys of images (3, ...), red, green and blue, normalised: (value - mean) / std with values in [0, 1].
        prob: probability that an item is changed.
        brightness: 0 to 1.
        contrast: 0 to 1.
        saturation: 0 to 1.
        hue: 0 to 0.5 turns.
        mean: what the normalisation subtracted, per channel.
        std: what it divided by, per channel.
        allow_missing_keys: whether an item may lack a key.

    Raises:
        ValueError: an amount is out of its range; on call: an image does not have three channels.

    Example:
        >>> jitter = RandColourJitterd("image", prob=1.0, brightness=0.5, contrast=0, saturation=0, hue=0).set_random_state(0)
        >>> jitter({"image": torch.full((3, 1, 1), 0.5)})["image"].flatten()  # each channel times 1.2152
        tensor([0.6076, 0.6076, 0.6076])
    """

    def __init__(
        self,
        keys: KeysCollection,
        prob: float = 0.5,
        brightness: float = 0.25,
        contrast: float = 0.25,
        saturation: float = 0.25,
        hue: float = 0.25,
        mean: Sequence[float] = (0.0, 0.0, 0.0),
        std: Sequence[float] = (1.0, 1.0, 1.0),
        allow_missing_keys: bool = False,
    ) -> None:
        MapTransform.__init__(self, keys, allow_missing_keys)
        RandomizableTransform.__init__(self, prob)
        amounts = {"brightness": brightness, "contrast": contrast, "saturation": saturation, "hue": hue}
        for name, amount in amounts.items():
            most = 0.5 if name == "hue" else 1.0
            if not 0 <= amount <= most:
                raise ValueError(f"{name}: found {amount}, expected 0 to {most:g}")
        self.amounts = tuple(amounts.values())
        self.mean, self.std = tuple(mean), tuple(std)

    def randomize(self, data: Any = None) -> None:
        """Draw whether there is a change, and which; always the same number of draws."""
        super().randomize(None)
        brightness, contrast, saturation, hue = (float(self.R.uniform(-amount, amount)) for amount in self.amounts)
        self.factors = (1 + brightness, 1 + contrast, 1 + saturation)
        self.turns = hue

    def __call__(self, data: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        """Return a shallow copy of ``data`` with changed images."""
        items = dict(data)
        self.randomize()
        for key in self.key_iterator(items):
            if self._do_transform:
                items[key] = self._changed(items[key])
        return items

    def _changed(self, image: torch.Tensor) -> torch.Tensor:
        if image.shape[0] != 3:
            raise ValueError(f"found an image of {image.shape[0]} channels, expected 3: red, green and blue")
        along = (3, *[1] * (image.ndim - 1))
        mean = torch.as_tensor(self.mean, dtype=image.dtype, device=image.device).reshape(along)
        std = torch.as_tensor(self.std, dtype=image.dtype, device=image.device).reshape(along)
        brightness, contrast, saturation = self.factors
        colours = (image * std + mean) * brightness
        colours = _from(_grey(colours).mean(), colours, contrast)
        colours = _from(_grey(colours), colours, saturation)
        turn = torch.as_tensor(hue_turn(self.turns), dtype=image.dtype, device=image.device)
        colours = torch.einsum("ij,j...->i...", turn, colours)
        return (colours.clamp(0, 1) - mean) / std


def hue_turn(turns: float) -> np.ndarray:
    """The matrix that turns colours around the axis of greys, which stay as they are, with the luma of every colour.

    Args:
        turns: 1 is all the way round.

    Returns:
        (3, 3), for red, green and blue.

    Example:
        >>> (hue_turn(0.25) @ np.array([0.5, 0.5, 0.5])).round(3).tolist()
        [0.5, 0.5, 0.5]
    """
    cosine, sine = math.cos(2 * math.pi * turns), math.sin(2 * math.pi * turns)
    turn = np.array([[1, 0, 0], [0, cosine, -sine], [0, sine, cosine]])
    return np.linalg.inv(_TO_YIQ) @ turn @ _TO_YIQ


def _grey(colours: torch.Tensor) -> torch.Tensor:
    weights = torch.as_tensor(_TO_YIQ[0], dtype=colours.dtype, device=colours.device)
    return torch.einsum("j,j...->...", weights, colours)


def _from(grey: torch.Tensor, colours: torch.Tensor, factor: float) -> torch.Tensor:
    return grey + (colours - grey) * factor


RandColourJitterD = RandColourJitterDict = RandColourJitterd
