"""Run the Triton kernels on the CPU: the variable has to be set before Triton is imported for the first time."""

from __future__ import annotations

import os
import sys

import pytest

if "triton" in sys.modules and os.environ.get("TRITON_INTERPRET") != "1":
    raise pytest.UsageError(
        "Triton was imported before tests/ops could ask for its interpreter: name tests before monai_margincal, or set "
        "TRITON_INTERPRET=1"
    )
os.environ.setdefault("TRITON_INTERPRET", "1")
