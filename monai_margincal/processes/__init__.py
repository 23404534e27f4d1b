"""The processes of one job: their group, their shares of the work, their memory, and (`tensors`) the numbers that they add up."""

from __future__ import annotations

from .freed_memory import keep_freed_memory
from .group import end_process_group, group_size, own_rank, start_process_group
from .shares import gather, is_split_by_rank, share_of

__all__ = [
    "end_process_group",
    "gather",
    "group_size",
    "is_split_by_rank",
    "keep_freed_memory",
    "own_rank",
    "share_of",
    "start_process_group",
]
