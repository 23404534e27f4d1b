"""The processes of one job: start and end them so that none crashes after its work is done, and tell them apart.

Nothing here imports torch before it is needed: counting files works without it.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import sys
from typing import TYPE_CHECKING, Any

from .interrupts import forget_advice

if TYPE_CHECKING:
    import torch

__all__ = ["end_process_group", "group_size", "own_rank", "start_process_group"]


def start_process_group(device: torch.device | str = "cpu", **options: Any) -> None:
    """Join the processes that a launcher such as ``torchrun`` started: NCCL for a CUDA device, else gloo.

    If there is a group already, started by a caller, nothing is done.

    The group lives until its last reference is gone. :mod:`torch.distributed.nn.functional` takes the group that it finds
    when it is imported as the default of its functions, for good, and :class:`~torch.nn.parallel.DistributedDataParallel`
    imports it: so it is imported here, before there is a group. Otherwise the threads of gloo outlive the interpreter, and
    the one that drops the last tensor of a Python object then ends the process with SIGABRT
    ("terminate called without an active exception", seen with torch 2.13.0; compare pytorch/pytorch pull request 179291).

    Args:
        device: where the tensors will lie; a CUDA device is also made the current one.
        options: further arguments of :func:`torch.distributed.init_process_group`.

    Example:
        >>> import pathlib, tempfile, torch
        >>> meeting = pathlib.Path(tempfile.mkdtemp()) / "meeting"
        >>> start_process_group("cpu", init_method=f"file://{meeting}", rank=0, world_size=1)
        >>> torch.distributed.get_backend()
        'gloo'
        >>> end_process_group()
    """
    import torch
    import torch.distributed as dist

    on_cuda = torch.device(device).type == "cuda"
    if not dist.is_initialized():
        importlib.import_module("torch.distributed.nn.functional")
        dist.init_process_group("nccl" if on_cuda else "gloo", **options)
    if on_cuda:
        torch.cuda.set_device(device)


def end_process_group() -> None:
    """Leave the group; what still refers to it (a wrapped network, in a cycle) is collected before the interpreter ends.

    Without a group nothing is done, so it may be called twice at the end of a job.

    Example:
        >>> end_process_group()
    """
    if _group_exists():
        import torch.distributed as dist

        forget_advice()
        group = [dist.group.WORLD]
        dist.destroy_process_group()
        # the frames that hold the network return only after this call; at exit, while the interpreter still lives, nothing
        # holds it
        atexit.register(_release, group)


def group_size() -> int:
    """Number of processes in the default group, 1 if there is no group.

    Example:
        >>> group_size()
        1
    """
    return sys.modules["torch.distributed"].get_world_size() if _group_exists() else 1


def own_rank() -> int:
    """Rank of this process in the default group, 0 if there is no group.

    Example:
        >>> own_rank()
        0
    """
    return sys.modules["torch.distributed"].get_rank() if _group_exists() else 0


def _group_exists() -> bool:
    # a group cannot exist before torch.distributed is imported
    dist = sys.modules.get("torch.distributed")
    return dist is not None and dist.is_available() and dist.is_initialized()


def _release(group: list[Any]) -> None:
    """Drop what holds the group in a cycle, then the group itself.

    The order matters: the last holder waits for the group's threads, which may wait for the interpreter's lock. A group
    releases the lock while it waits; a wrapped network does not, and would wait for ever.
    """
    gc.collect()
    group.clear()
