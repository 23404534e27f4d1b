"""How much memory torch holds at once, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def peak_allocation(function: Callable[[], Any]) -> int:
    """Most bytes that torch's CPU allocator held at once beyond those at the start."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        function()
    held = peak = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]" and event.device_index() == -1:
            held += event.nbytes()
            peak = max(peak, held)
    return peak
