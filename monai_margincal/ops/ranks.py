"""One number averaged over all processes of a distributed run."""

from __future__ import annotations

import torch
import torch.distributed as dist

__all__ = ["mean_over_ranks"]


@torch.library.custom_op("margincal::mean_over_ranks", mutates_args=())
def mean_over_ranks(value: torch.Tensor) -> torch.Tensor:
    """The mean of a scalar over the default process group, float64; the value itself without one.

    An operator of its own, so that `torch.compile` and TorchScript take the communication as one step.

    Example:
        >>> mean_over_ranks(torch.tensor(3))
        tensor(3., dtype=torch.float64)
    """
    result = value.to(torch.float64)
    if dist.is_available() and dist.is_initialized():
        total = value.clone()
        dist.all_reduce(total)
        result = total.to(torch.float64) / dist.get_world_size()
    return result.clone()


@mean_over_ranks.register_fake
def _(value: torch.Tensor) -> torch.Tensor:
    return value.new_empty((), dtype=torch.float64)
