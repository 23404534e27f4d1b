"""Offsets inside the weights: in the bias of the last convolution, so that the largest logit decides with them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import torch

from .class_offsets import ClassOffsets

__all__ = ["baked_offsets", "baked_weights", "bias_candidates"]

#: key in the metadata that PyTorch keeps beside a state dict
_MARK = "margincal"


def baked_weights(
    state_dict: Mapping[str, torch.Tensor], offsets: ClassOffsets, bias: str | None = None
) -> tuple[OrderedDict[str, torch.Tensor], str]:
    """Add the offsets to the bias of the convolution that gives the logits.

    The largest logit of the network is then what `ClassOffsets` decides on the logits without, except where two sums are equal
    up to rounding. A convolution of one logit (class 1 against 0) gets the offset of class 1. Only right if nothing stands
    between the convolution and the logits.

    Args:
        state_dict: name -> tensor of a network; nothing in it is changed.
        offsets: one per class.
        bias: name of the bias; needed where several convolutions have as many outputs as there are classes.

    Returns:
        a copy with the new bias, in single precision at least, and a mark in its metadata, which a file keeps; the bias' name.

    Raises:
        ValueError: offsets are in the weights already; no bias, or more than one, could be meant; the named one does not exist
            or is of another shape. The message names the candidates.

    Example:
        >>> network = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 2, 1))
        >>> weights, name = baked_weights(network.state_dict(), ClassOffsets([0, 1.5]))
        >>> name, (weights[name] - network.state_dict()[name]).tolist()
        ('2.bias', [0.0, 1.5])
        >>> baked_weights(weights, ClassOffsets([0, 1.5]))
        Traceback (most recent call last):
        ValueError: found weights with the offsets [0.0, 1.5] in '2.bias' already, expected weights without
    """
    earlier = baked_offsets(state_dict)
    if earlier is not None:
        raise ValueError(
            f"found weights with the offsets {list(earlier['offsets'])} in {earlier['bias']!r} already, expected weights without"
        )
    classes = len(offsets.offsets)
    name = _only_candidate(state_dict, classes) if bias is None else bias
    if name not in state_dict:
        raise ValueError(f"found no {name!r} in the weights, expected one of {bias_candidates(state_dict, classes)}")
    old = state_dict[name]
    if tuple(old.shape) not in _shapes(classes):
        raise ValueError(
            f"{name}: found a bias of shape {tuple(old.shape)}, expected {' or '.join(map(str, _shapes(classes)))} for {classes} "
            f"classes, as have {bias_candidates(state_dict, classes)}"
        )
    shift = torch.tensor(offsets.offsets[-len(old) :], dtype=torch.float64, device=old.device)
    kept = old.dtype if old.dtype == torch.float64 else torch.float32
    baked: OrderedDict[str, torch.Tensor] = OrderedDict(state_dict)
    baked[name] = (old.double() + shift).to(kept)
    metadata = OrderedDict(getattr(state_dict, "_metadata", {}))
    metadata[_MARK] = {"offsets": list(offsets.offsets), "bias": name}
    baked._metadata = metadata  # type: ignore[attr-defined]
    return baked, name


def baked_offsets(state_dict: Any) -> Mapping[str, Any] | None:
    """What `baked_weights` has put into weights, ``offsets`` and ``bias``; None for any others.

    Example:
        >>> baked_offsets({"bias": torch.zeros(2)}) is None
        True
    """
    mark: Mapping[str, Any] | None = getattr(state_dict, "_metadata", {}).get(_MARK)
    return mark


def bias_candidates(state_dict: Mapping[str, torch.Tensor], classes: int) -> list[str]:
    """Names of the biases of convolutions with as many outputs as classes, or with one where there are two classes."""
    found = []
    for name, value in state_dict.items():
        weight = state_dict.get(f"{name.removesuffix('bias')}weight")
        if name.endswith("bias") and weight is not None and weight.ndim > 2 and tuple(value.shape) in _shapes(classes):
            found.append(name)
    return found


def _shapes(classes: int) -> list[tuple[int, ...]]:
    return [(classes,), (1,)] if classes == 2 else [(classes,)]


def _only_candidate(state_dict: Mapping[str, torch.Tensor], classes: int) -> str:
    candidates = bias_candidates(state_dict, classes)
    if len(candidates) != 1:
        biases = [f"{name} {tuple(value.shape)}" for name, value in state_dict.items() if name.endswith("bias")]
        raise ValueError(
            f"found {len(candidates)} biases of convolutions that could give the logits of {classes} classes, "
            f"{candidates or f'the last biases being {biases[-3:]}'}, expected one, or the name of the one that is meant"
        )
    return candidates[0]
