"""A network made ready for where it runs: device, memory layout, and several processes."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def placed_network(
    network: nn.Module, device: torch.device | str, channels_last: bool = False, distributed: bool = False
) -> nn.Module:
    """Move a network to its device, into its memory layout and, for several processes, into `DistributedDataParallel`.

    Args:
        network: the network; it is moved, not copied.
        device: where it runs.
        channels_last: store the weights of 2D convolutions as half precision on a GPU wants them.
        distributed: wrap it, so that every process gets the mean of all gradients; the process group must have been started.

    Returns:
        the network itself, or its wrapper.

    Example:
        >>> network = placed_network(nn.Conv2d(2, 3, 3), "cpu", channels_last=True)
        >>> network.weight.is_contiguous(memory_format=torch.channels_last)
        True
    """
    layout = torch.channels_last if channels_last else torch.contiguous_format
    # the stubs of PyTorch have no `memory_format` together with a device
    placed: nn.Module = network.to(device, memory_format=layout)  # type: ignore[call-overload]
    if not distributed:
        return placed
    on_cuda = torch.device(device).type == "cuda"
    return DistributedDataParallel(placed, device_ids=[device] if on_cuda else None)
