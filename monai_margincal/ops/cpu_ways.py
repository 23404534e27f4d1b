"""What computes a loss in tensor operations or compiled code: blocks of voxels, or the kernels for the CPU where they take it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch

from .blockwise import blockwise_loss
from .blockwise_overlap import blockwise_overlap, blockwise_overlap_gradient
from .cpu_launch import compiled_count, compiled_loss, compiled_overlap, compiled_overlap_gradient, worth_compiling
from .voxel_blocks import TargetForm, count_valid

__all__ = ["Way", "way_for"]


class Way(NamedTuple):
    """Functions with the same arguments and results, whoever does the work."""

    voxels: Callable[[torch.Tensor, torch.Tensor, TargetForm], int]
    loss: Callable[..., torch.Tensor]
    overlap: Callable[..., tuple[torch.Tensor, torch.Tensor, torch.Tensor]]
    overlap_gradient: Callable[..., None]


_BLOCKWISE = Way(count_valid, blockwise_loss, blockwise_overlap, blockwise_overlap_gradient)
_COMPILED = Way(compiled_count, compiled_loss, compiled_overlap, compiled_overlap_gradient)


def way_for(input: torch.Tensor, target: torch.Tensor, form: TargetForm, backend: str) -> Way:
    """The compiled kernels for the backend "auto", wherever they can do it."""
    takes = backend == "auto" and worth_compiling(input, target, form.holds_indices, form.ignore_index)
    return _COMPILED if takes else _BLOCKWISE
