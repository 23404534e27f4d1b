"""Begin and end the processes of one job so that none of them crashes after its work is done."""

from __future__ import annotations

import atexit
import gc
import importlib
from typing import Any

import torch
import torch.distributed as dist


def start_process_group(device: torch.device | str = "cpu", **options: Any) -> None:
    """Join the processes that a launcher such as ``torchrun`` started: NCCL for a CUDA device, else gloo.

    Where a group is there already, because a caller began it, nothing is done.

    The group lives until its last reference is gone. :mod:`torch.distributed.nn.functional` takes the group that it finds
    when it is imported as the default of its functions, for good, and :class:`~torch.nn.parallel.DistributedDataParallel`
    imports it: so it is imported here, while there is none. Otherwise the threads of gloo outlive the interpreter, and
    the one that drops the last tensor of a Python object then ends the process with SIGABRT
    ("terminate called without an active exception", seen with torch 2.13.0; compare pytorch/pytorch pull request 179291).

    Args:
        device: where the tensors will lie; a CUDA device is also made the current one.
        options: of :func:`torch.distributed.init_process_group`.

    Example:
        >>> import pathlib, tempfile, torch
        >>> meeting = pathlib.Path(tempfile.mkdtemp()) / "meeting"
        >>> start_process_group("cpu", init_method=f"file://{meeting}", rank=0, world_size=1)
        >>> torch.distributed.get_backend()
        'gloo'
        >>> end_process_group()
    """
    on_cuda = torch.device(device).type == "cuda"
    if not dist.is_initialized():
        importlib.import_module("torch.distributed.nn.functional")
        dist.init_process_group("nccl" if on_cuda else "gloo", **options)
    if on_cuda:
        torch.cuda.set_device(device)


def end_process_group() -> None:
    """Leave the group; what still refers to it (a wrapped network, in a cycle) is collected before the interpreter ends.

    Without a group nothing is done, so that the end of a job may call it twice.

    Example:
        >>> end_process_group()
    """
    if dist.is_initialized():
        group = [dist.group.WORLD]
        dist.destroy_process_group()
        # the frames that hold the network return after this; at exit, while the interpreter still lives, nobody does
        atexit.register(_release, group)


def _release(group: list[Any]) -> None:
    """Drop what holds the group in a cycle, then the group itself.

    In this order, because the last holder waits for the group's threads, which may wait for the interpreter's lock:
    a group lets go of it meanwhile, a wrapped network does not and would wait for ever.
    """
    gc.collect()
    group.clear()
