"""One thread per test process: two workers with two threads each would fight for two cores, several times slower."""

from __future__ import annotations

import os

if "PYTEST_XDIST_WORKER" in os.environ:
    # inherited by the processes that tests start
    os.environ.setdefault("OMP_NUM_THREADS", "1")

    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
