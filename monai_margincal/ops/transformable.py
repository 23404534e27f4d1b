"""The loss under `torch.func`: grad, vmap, jvp, jacrev, jacfwd, in any nesting.

A transform needs the forward pass to be separate from what is kept for backward. That would cost the ordinary eager way its
early gradient, so these Functions are used only while a transform is at work. Under `vmap` the members of the batch are computed
one by one.
"""

from __future__ import annotations

from typing import Any

import torch

from .passes import backward_pass, forward_pass

__all__ = [
    "TransformableGradient",
    "TransformableLoss",
    "refuse_second_derivative",
    "stands_for_many",
    "transforms_at_work",
]


def transforms_at_work() -> bool:
    """Whether the call comes from within a `torch.func` transform."""
    return torch._C._are_functorch_transforms_active()


def stands_for_many(grad_loss: torch.Tensor) -> bool:
    """Whether it is a batch of incoming gradients, as ``torch.autograd.grad(is_grads_batched=True)`` makes them."""
    return torch._C._functorch.is_legacy_batchedtensor(grad_loss)


def refuse_second_derivative() -> None:
    """Raise: what would follow is a derivative of the gradient."""
    raise RuntimeError(
        "the margin-calibrated loss has no second derivative: its gradient was differentiated (create_graph=True), expected "
        "at most one backward pass through the loss"
    )


class TransformableLoss(torch.autograd.Function):
    """(input, target, four tensors, class_mask, options) -> (loss, number of valid voxels)."""

    @staticmethod
    def forward(*arguments: Any) -> tuple[torch.Tensor, torch.Tensor]:
        input, target, *tensors, class_mask, options = arguments
        return forward_pass(input, target, tuple(tensors), class_mask, options=options)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
        ctx.save_for_backward(output[1], *inputs[:-1])
        ctx.save_for_forward(output[1], *inputs[:-1])
        ctx.options = inputs[-1]
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, grad_loss: torch.Tensor, _: Any) -> tuple[Any, ...]:
        return TransformableGradient.apply(grad_loss, *ctx.saved_tensors, ctx.options), *(None,) * 7

    @staticmethod
    def jvp(ctx: Any, tangent: torch.Tensor, *_: Any) -> tuple[torch.Tensor, None]:
        input, options = ctx.saved_tensors[1], ctx.options
        dtype = torch.promote_types(input.dtype, torch.float32)
        shape = (input.shape[0], 1, *input.shape[2:]) if options.reduction == "none" else ()
        gradient = TransformableGradient.apply(input.new_ones(shape, dtype=dtype), *ctx.saved_tensors, options)
        pushed = gradient.to(dtype) * tangent.to(dtype)
        return pushed.sum(dim=1, keepdim=True) if options.reduction == "none" else pushed.sum(), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *arguments: Any) -> tuple[Any, tuple[int, int]]:
        results = [TransformableLoss.apply(*_member(arguments, in_dims, i)) for i in range(info.batch_size)]
        return (torch.stack([loss for loss, _ in results]), torch.stack([valid for _, valid in results])), (0, 0)


class TransformableGradient(torch.autograd.Function):
    """(incoming gradient, valid, input, target, four tensors, class_mask, options) -> gradient of the logits."""

    @staticmethod
    def forward(*arguments: Any) -> torch.Tensor:
        grad_loss, valid, input, target, *tensors, class_mask, options = arguments
        return backward_pass(
            input, target, tuple(tensors), class_mask, options=options, grad_loss=grad_loss, valid=valid
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        refuse_second_derivative()

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> Any:
        refuse_second_derivative()

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *arguments: Any) -> tuple[torch.Tensor, int]:
        members = [TransformableGradient.apply(*_member(arguments, in_dims, i)) for i in range(info.batch_size)]
        return torch.stack(members), 0


def _member(arguments: tuple[Any, ...], in_dims: tuple[int | None, ...], index: int) -> list[Any]:
    """The arguments of one member of the batch."""
    return [
        one if dim is None or not isinstance(one, torch.Tensor) else one.select(dim, index)
        for one, dim in zip(arguments, in_dims, strict=True)
    ]
