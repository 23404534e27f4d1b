"""What has to be settled before torch or Triton is imported for the first time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent
#: rooms whose tests run whole bundles, studies, pictures and clients: minutes together, though none of them alone
SLOW_ROOMS = ("benchmarks", "clients", "experiments", "outputs", "shipped_bundles")

# Triton decides at its import whether kernels run on the CPU; any test may be the first to import it.
os.environ.setdefault("TRITON_INTERPRET", "1")

if "PYTEST_XDIST_WORKER" in os.environ:
    # Two workers with two threads each would fight for two cores, several times slower. Processes that tests start inherit it.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave what takes minutes out of ``-m "not slow"``."""
    for item in items:
        if item.path.is_relative_to(HERE) and item.path.relative_to(HERE).parts[0] in SLOW_ROOMS:
            item.add_marker(pytest.mark.slow)
