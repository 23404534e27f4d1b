"""What every test of the operator begins and ends with."""

from __future__ import annotations

import pytest

from monai_margincal.ops import triton_launch


@pytest.fixture(autouse=True)
def no_report_is_left():
    triton_launch._REPORTS.clear()
    yield
    triton_launch._REPORTS.clear()
