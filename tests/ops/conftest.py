"""Run the Triton kernels on the CPU: the variable has to be set before Triton is imported for the first time."""

from __future__ import annotations

import os

os.environ.setdefault("TRITON_INTERPRET", "1")
