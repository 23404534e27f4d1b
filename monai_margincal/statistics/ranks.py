"""Sharing a count between the processes of one torch.distributed group."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def group_size() -> int:
    """Processes in the default group, 1 where there is none."""
    # a group cannot exist before torch.distributed is imported, and counting files does without
    dist = sys.modules.get("torch.distributed")
    return dist.get_world_size() if dist is not None and dist.is_available() and dist.is_initialized() else 1


def own_rank() -> int:
    """Rank of this process, 0 where there is no group."""
    return sys.modules["torch.distributed"].get_rank() if group_size() > 1 else 0


def share_of(items: Sequence[T]) -> list[T]:
    """Every n-th item, beginning at this process's rank: shares differ by one item at most and may be empty."""
    return list(items[own_rank() :: group_size()])


def gather(work: Callable[[], T]) -> list[T]:
    """Do ``work`` on every rank and give all results, in the order of the ranks, to every rank.

    What is sent are the results (class counts of cases), never labels. A rank whose work fails does not leave the others
    waiting: all of them raise its error.

    Raises:
        ValueError, FileNotFoundError, TypeError: the error of the lowest rank that failed.
    """
    if group_size() == 1:
        return [work()]
    import torch.distributed as dist

    error: Exception | None = None
    own: T | None = None
    try:
        own = work()
    except Exception as caught:  # every rank must reach the exchange below
        error = caught
    outcomes: list[Any] = [None] * group_size()
    dist.all_gather_object(outcomes, (own, None if error is None else (type(error).__name__, str(error))))
    for rank, (_, failure) in enumerate(outcomes):
        if failure is None:
            continue
        if rank == own_rank() and error is not None:
            raise error
        name, message = failure
        raise {"FileNotFoundError": FileNotFoundError, "TypeError": TypeError}.get(name, ValueError)(
            f"rank {rank}: {message}"
        )
    return [result for result, _ in outcomes]


def is_split_by_rank(loader: Any) -> bool:
    """Whether a DataLoader gives each rank a share of its own.

    Raises:
        ValueError: its sampler repeats items to make the shares equal, so they would be counted twice.
    """
    from torch.utils.data.distributed import DistributedSampler

    sampler = getattr(loader, "sampler", None)
    if not isinstance(sampler, DistributedSampler):
        return False
    items, shares = len(sampler.dataset), sampler.num_replicas  # type: ignore[arg-type]
    if sampler.total_size > items:
        raise ValueError(
            f"the DataLoader's DistributedSampler repeats {sampler.total_size - items} of {items} items to make {shares} equal "
            "shares, which would be counted twice: expected monai.data.DistributedSampler(even_divisible=False), or the data set "
            "itself, which is shared without repeating"
        )
    return group_size() > 1
