"""Shares of the work, exchanges and sums between two processes: nobody waits for one that failed."""

from __future__ import annotations

import socket

import pytest
import torch
from torch import multiprocessing
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from monai_margincal.processes import (
    end_process_group,
    gather,
    group_size,
    is_split_by_rank,
    own_rank,
    share_of,
    start_process_group,
)
from monai_margincal.processes.tensors import mean_over_ranks, sum_over_ranks


def _failing() -> None:
    if own_rank() == 1:
        raise TypeError("found a list")


def _work(rank: int, port: int, answers) -> None:
    start_process_group("cpu", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    value = torch.tensor(3 + rank)
    try:
        gather(_failing)
    except TypeError as error:
        failure = str(error)
    answers.put(
        {
            "rank": own_rank(),
            "size": group_size(),
            "share": share_of("abcde"),
            "gathered": gather(lambda: f"of {rank}"),
            "failure": failure,
            "sum": int(sum_over_ranks(value)),
            "mean": float(mean_over_ranks(value)),
            "kept": int(value),
        }
    )
    end_process_group()


def test_two_processes():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # forked: a spawned process would import everything again
    answers = multiprocessing.get_context("fork").SimpleQueue()
    multiprocessing.start_processes(_work, args=(port, answers), nprocs=2, start_method="fork")
    first, second = sorted((answers.get() for _ in range(2)), key=lambda answer: answer["rank"])
    assert first == {
        "rank": 0,
        "size": 2,
        "share": ["a", "c", "e"],
        "gathered": ["of 0", "of 1"],
        "failure": "rank 1: found a list",
        "sum": 7,
        "mean": 3.5,
        "kept": 3,
    }
    assert second == {**first, "rank": 1, "share": ["b", "d"], "failure": "found a list", "kept": 4}


def test_alone_a_sum_is_the_number():
    value = torch.tensor([3, 4])
    assert sum_over_ranks(value) is value
    assert mean_over_ranks(torch.tensor(3)).dtype == torch.float64


def test_sampler_that_repeats_items_is_refused() -> None:
    sampler = DistributedSampler(range(5), num_replicas=2, rank=0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="repeats 1 of 5 items to make 2 equal shares, which would be counted twice"):
        is_split_by_rank(DataLoader(range(5), sampler=sampler))  # type: ignore[arg-type]
    assert not is_split_by_rank(DataLoader(range(5)))  # type: ignore[arg-type]
