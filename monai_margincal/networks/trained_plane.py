"""The size of the planes that a network's weights were trained on, which travels in their state dict.

What pools over a whole plane (channel gates, group and instance norm) sees another average in a plane of another size, and small
lesions are then lost without a word. So the size belongs to the weights, as a running mean does, and whoever presents planes to
the network can ask for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn

#: name of the buffer, int64 of shape (2,): the plane's two sides, zeros where they are unknown
BUFFER = "trained_plane"


def trained_plane(network: Any) -> tuple[int, int] | None:
    """Read the size of the planes that a network's weights were trained on.

    Args:
        network: a `COPLENet`, or one in `DistributedDataParallel`, compiled, scripted or traced. Of anything else nothing is
            known.

    Returns:
        rows and columns in voxels, or None: the weights do not say, as those published for COPLE-Net and all that were saved
        without a call of `record_trained_plane`.

    Example:
        >>> from monai_margincal.networks import COPLENet, record_trained_plane, trained_plane
        >>> network = COPLENet(features=(8, 16, 32, 64, 128))
        >>> print(trained_plane(network))
        None
        >>> record_trained_plane(network, (64, 64))
        >>> other = COPLENet(features=(8, 16, 32, 64, 128))
        >>> other.load_state_dict(network.state_dict())
        <All keys matched successfully>
        >>> trained_plane(other)
        (64, 64)
    """
    for wrapped in _inside(network):
        buffer = getattr(wrapped, BUFFER, None)
        if isinstance(buffer, torch.Tensor) and buffer.shape == (2,):
            rows, columns = (int(side) for side in buffer.tolist())
            return (rows, columns) if rows > 0 and columns > 0 else None
    return None


def record_trained_plane(network: nn.Module, size: Sequence[int]) -> None:
    """Write down the size of the planes that a network is trained on; from now on it is part of the state dict.

    Args:
        network: a `COPLENet`, alone or wrapped. In a network of another class there is no place for it, and nothing happens.
        size: rows and columns in voxels.

    Raises:
        ValueError: ``size`` is not two positive whole numbers.
    """
    sides = list(size)
    if len(sides) != 2 or any(isinstance(side, bool) or int(side) != side or side < 1 for side in sides):
        raise ValueError(f"trained plane: found {sides}, expected two whole numbers of voxels, rows and columns")
    for wrapped in _inside(network):
        buffer = getattr(wrapped, BUFFER, None)
        if isinstance(buffer, torch.Tensor):
            # in place: the buffer stays where the network is
            buffer.copy_(torch.tensor(sides, device=buffer.device))
            return


def complete_trained_plane(state_dict: dict[str, torch.Tensor], prefix: str = "") -> None:
    """Make the entry of a state dict that is about to be loaded valid.

    Weights that do not say get zeros. A file of half precision and federated averaging turn whole numbers into fractions, which
    are rounded, lest 255.999 become 255.
    """
    found = state_dict.get(prefix + BUFFER)
    if found is None:
        # on the CPU even where another default device is set: it is copied into the buffer
        state_dict[prefix + BUFFER] = torch.zeros(2, dtype=torch.int64, device="cpu")
    elif found.is_floating_point():
        state_dict[prefix + BUFFER] = found.round().to(torch.int64)


def _inside(network: Any) -> Iterator[Any]:
    """The network and what it wraps: parallel networks keep it under ``module``, compiled ones pass attributes on."""
    while network is not None:
        yield network
        inner = getattr(network, "module", None)
        network = inner if isinstance(inner, nn.Module) else None
