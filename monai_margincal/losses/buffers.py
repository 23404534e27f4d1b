"""Numbers that a loss is made with, as tensors that have values whatever the default device is."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["with_values"]


def with_values(numbers: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
    """The numbers as a tensor on the default device, but on the CPU where that is "meta".

    A network made on "meta" gets its parameters later; margins and weights of a loss are settings and come with it.

    Example:
        >>> with torch.device("meta"):
        ...     values = with_values([1.0, 2.0])
        >>> values
        tensor([1., 2.])
    """
    tensor = torch.tensor(numbers, dtype=dtype)
    return torch.tensor(numbers, dtype=dtype, device="cpu") if tensor.is_meta else tensor
