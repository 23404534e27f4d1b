"""largest_class is argmax, only faster."""

from __future__ import annotations

import pytest
import torch

from monai_margincal.ops import largest_class


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.uint8, torch.int64]
)
@pytest.mark.parametrize("classes", [1, 2, 5])
def test_equals_numpy_argmax_with_ties(dtype: torch.dtype, classes: int) -> None:
    torch.manual_seed(0)
    values = torch.randint(0, 3, (2, classes, 7, 5, 3)).to(dtype)  # many equal ones
    expected = torch.from_numpy(values.double().numpy().argmax(axis=1))
    assert torch.equal(largest_class(values), expected)
    assert torch.equal(largest_class(values, keepdim=True), expected[:, None])
    assert torch.equal(largest_class(values.movedim(1, 0), dim=0), expected)


def test_nan_counts_as_largest() -> None:
    values = torch.tensor([[3.0], [float("nan")], [5.0]])
    assert largest_class(values, dim=0).tolist() == values.argmax(dim=0).tolist() == [1]
