"""Numbers that all processes of a distributed run add up; the one part of the room that imports torch."""

from __future__ import annotations

import torch
import torch.distributed as dist

from .group import group_size

__all__ = ["mean_over_ranks", "sum_over_ranks"]


def sum_over_ranks(value: torch.Tensor) -> torch.Tensor:
    """The sum of a tensor over the default process group; the tensor itself if there is none. Every process must call it.

    Example:
        >>> sum_over_ranks(torch.tensor([3, 4]))
        tensor([3, 4])
    """
    if group_size() == 1:
        return value
    total = value.clone()
    dist.all_reduce(total)
    return total


@torch.library.custom_op("margincal::mean_over_ranks", mutates_args=())
def mean_over_ranks(value: torch.Tensor) -> torch.Tensor:
    """The mean of a scalar over the default process group, float64; the value itself if there is no group.

    An operator of its own, so that `torch.compile` and TorchScript take the communication as one step.

    Example:
        >>> mean_over_ranks(torch.tensor(3))
        tensor(3., dtype=torch.float64)
    """
    # cloned, because an operator must not return its argument
    return (sum_over_ranks(value).to(torch.float64) / group_size()).clone()


@mean_over_ranks.register_fake
def _(value: torch.Tensor) -> torch.Tensor:
    return value.new_empty((), dtype=torch.float64)
