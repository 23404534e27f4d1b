"""What tells the weights that offsets were fitted for from all others."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch

__all__ = ["weights_digest"]

#: what `DistributedDataParallel` and `torch.compile` put before the names of parameters
_WRAPPERS = ("module.", "_orig_mod.")


def weights_digest(state_dict: Mapping[str, torch.Tensor]) -> str:
    """A digest of names and values of a network's weights, the same however they are stored or wrapped.

    Only floating-point values count, in single precision: a file of half precision has the digest of the network that it was
    loaded into, and counters or notes beside the weights, which a later version may add, change nothing.

    Args:
        state_dict: name -> tensor, on any device; names may begin as those of a wrapped network.

    Returns:
        ``"sha256:"`` and 64 digits.

    Example:
        >>> weights = {"bias": torch.tensor([0.5]), "steps": torch.tensor(3)}
        >>> wrapped = {"module.steps": torch.tensor(4), "module.bias": torch.tensor([0.5]).half()}
        >>> weights_digest(weights) == weights_digest(wrapped)
        True
        >>> weights_digest(weights) == weights_digest({**weights, "bias": torch.tensor([0.25])})
        False
    """
    named = {}
    for name, value in state_dict.items():
        for wrapper in _WRAPPERS:
            name = name.removeprefix(wrapper)
        if value.is_floating_point():
            named[name] = value.detach().cpu().float().contiguous()
    digest = hashlib.sha256()
    for name, value in sorted(named.items()):
        digest.update(f"{name} {tuple(value.shape)}\n".encode())
        digest.update(value.numpy().tobytes())
    return f"sha256:{digest.hexdigest()}"
