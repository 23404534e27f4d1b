"""Sharing work between the processes of one torch.distributed group; without a group, one process does it all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .group import group_size, own_rank

__all__ = ["gather", "is_split_by_rank", "share_of"]

T = TypeVar("T")


def share_of(items: Sequence[T]) -> list[T]:
    """Every n-th item, beginning at this process's rank: shares differ by at most one item and may be empty.

    Example:
        >>> share_of(["a", "b", "c"])
        ['a', 'b', 'c']
    """
    return list(items[own_rank() :: group_size()])


def gather(work: Callable[[], T]) -> list[T]:
    """Do ``work`` on every rank and give every rank all results, in the order of the ranks.

    Results are sent as pickled Python objects, so they should be small: class counts, not labels. A rank whose work fails does
    not leave the others waiting: all of them raise its error.

    Raises:
        ValueError, FileNotFoundError, TypeError: the error of the lowest rank that failed, with its rank in front if it is not
            this one.

    Example:
        >>> gather(lambda: 3)
        [3]
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
