"""Numbers that a loss is made with, in buffers that keep them whatever becomes of the module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

__all__ = ["HoldsSettings", "with_values"]


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


class HoldsSettings(nn.Module):
    """A module with buffers that are settings: they follow its device, but not its precision below float32.

    They survive "meta" and ``to_empty``, too, which leave parameters to a checkpoint. In float64 they are as exact as they were
    given, unless they were changed since.
    """

    def _hold(self, name: str, numbers: Any, dtype: torch.dtype | None = None) -> None:
        """Register a buffer with these numbers; call it after ``__init__`` of the module."""
        self._exact: dict[str, Any] = {**getattr(self, "_exact", {}), name: numbers}
        self.register_buffer(name, with_values(numbers, dtype))

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> HoldsSettings:
        before = {name: self._buffers[name] for name in getattr(self, "_exact", {})}
        super()._apply(fn, recurse)
        for name, old in before.items():
            new = self._buffers[name]
            if old is None or new is None:
                continue
            if new.is_meta:
                if not old.is_meta and not torch.equal(old.float().cpu(), self._given(name, torch.float32)):
                    self._exact[name] = old.tolist()  # changed since, and gone from here on
                continue
            if old.is_meta:
                old = self._given(name, old.dtype)
            # the old values: those of ``to_empty`` are whatever was in the memory
            lower = new.dtype in (torch.float16, torch.bfloat16)
            self._buffers[name] = new = old.to(new.device, old.dtype if lower else new.dtype)
            if new.dtype == torch.float64 and old.dtype == torch.float32:
                exact = self._given(name, torch.float64).to(new.device)
                if exact.shape == new.shape and torch.equal(exact.float(), new.float()):
                    self._buffers[name] = exact
        return self

    def _given(self, name: str, dtype: torch.dtype) -> torch.Tensor:
        return torch.tensor(self._exact[name], dtype=dtype, device="cpu")
