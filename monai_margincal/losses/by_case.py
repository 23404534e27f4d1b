"""A loss that looks at values, under `torch.func.vmap`: the members of the batch one by one.

`vmap` cannot let a computation depend on the values of a batch, for example on whether a label is declared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..ops.transformable import transforms_at_work

__all__ = ["LossOfMembers", "is_batch_of_vmap"]


def is_batch_of_vmap(*tensors: torch.Tensor) -> bool:
    """Whether one of them stands for a batch, at any depth of `torch.func` transforms."""
    return transforms_at_work() and any(_holds_batch(one) for one in tensors)


def _holds_batch(tensor: torch.Tensor) -> bool:
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        if functorch.is_batchedtensor(tensor):
            return True
        tensor = functorch.get_unwrapped(tensor)
    return False


class LossOfMembers(torch.autograd.Function):
    """(input, target, loss) -> (value, gradient of its sum), where every entry of the value has voxels of its own."""

    @staticmethod
    def forward(
        input: torch.Tensor, target: torch.Tensor, loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.enable_grad():
            leaf = input.detach().requires_grad_()
            value = loss(leaf, target)
            (gradient,) = torch.autograd.grad(value.sum(), leaf)
        return value.detach(), gradient

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1], inputs[0])
        ctx.save_for_forward(output[1])
        ctx.shape = output[0].shape

    @staticmethod
    def backward(ctx: Any, grad_loss: torch.Tensor, _: Any) -> tuple[Any, ...]:
        return _OnlyOnce.apply(grad_loss, *ctx.saved_tensors), None, None

    @staticmethod
    def jvp(ctx: Any, tangent: torch.Tensor, *_: Any) -> tuple[torch.Tensor, None]:
        pushed = ctx.saved_tensors[0] * tangent
        return pushed.sum_to_size(ctx.shape) if ctx.shape else pushed.sum(), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *arguments: Any) -> tuple[Any, tuple[int, int]]:
        input, target, loss = arguments
        found = []
        for member in range(info.batch_size):
            one, labels = (
                tensor if dim is None else tensor.select(dim, member)
                for tensor, dim in zip((input, target), in_dims[:2], strict=True)
            )
            found.append(LossOfMembers.apply(one, labels, loss))
        return (torch.stack([value for value, _ in found]), torch.stack([slopes for _, slopes in found])), (0, 0)


class _OnlyOnce(torch.autograd.Function):
    """The product of the gradient and the incoming one; it depends on the logits, too, but has no derivative."""

    generate_vmap_rule = True

    @staticmethod
    def forward(grad_loss: torch.Tensor, gradient: torch.Tensor, input: torch.Tensor) -> torch.Tensor:
        return (gradient * grad_loss).to(gradient.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise RuntimeError("a second derivative of a loss under vmap: expected at most one backward pass")

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> Any:
        raise RuntimeError("a second derivative of a loss under vmap: expected at most one derivative")
