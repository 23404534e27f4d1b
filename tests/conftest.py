"""What has to be settled before torch or Triton is imported for the first time."""

from __future__ import annotations

import os

# Triton decides at its import whether kernels run on the CPU; any test may be the first to import it.
os.environ.setdefault("TRITON_INTERPRET", "1")

if "PYTEST_XDIST_WORKER" in os.environ:
    # Two workers with two threads each would fight for two cores, several times slower. Processes that tests start inherit it.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
