"""The loss on more elements than 32 bits can number, compared with itself on pieces that are far from it."""

from __future__ import annotations

from typing import NamedTuple

import torch
from ops.ways import terms

from monai_margincal.ops import margin_calibration


class Plan(NamedTuple):
    """Voxels of a case of two classes, the voxels of a piece, and the logits' dtype."""

    voxels: int
    piece: int
    dtype: torch.dtype

    @property
    def bytes(self) -> int:
        """Logits, their gradient, labels of one byte, and twice a piece's share of all that a plain computation holds."""
        size = torch.finfo(self.dtype).bits // 8
        return self.voxels * (2 * 2 * size + 1) + 200 * self.piece


_PIECE = 2**23
_MORE = 2**20 + 77  # fills no block
ALL = (
    Plan(2**30 + _MORE, _PIECE, torch.float32),  # logits beyond 2^31
    Plan(2**31 + _MORE, _PIECE, torch.float16),  # voxels beyond 2^31
)
LEAST_BYTES = min(plan.bytes for plan in ALL)


def plans(free_bytes: int) -> list[Plan]:
    """Those that fit into nine tenths of the memory."""
    return [plan for plan in ALL if plan.bytes <= 0.9 * free_bytes]


def compare(plan: Plan, device: torch.device) -> None:
    """Raise AssertionError where the whole differs from the sum of its pieces, or a piece's gradient from its own."""
    torch.manual_seed(0)
    logits = torch.empty(1, 2, plan.voxels, dtype=plan.dtype, device=device)
    labels = torch.empty(1, plan.voxels, dtype=torch.uint8, device=device)
    pieces = [slice(start, min(start + plan.piece, plan.voxels)) for start in range(0, plan.voxels, plan.piece)]
    for piece in pieces:  # other numbers in every piece; random numbers for all at once would take twice the memory
        logits[:, :, piece].normal_(0, 2)
        labels[:, piece].random_(0, 2)
    logits.requires_grad_()
    values = [term.to(device) for term in terms(2)]
    loss, valid = margin_calibration(logits, labels, *values, backend="triton")
    # the gradient of the sum: half precision has no number as small as one share of the mean
    loss.backward(torch.tensor(float(plan.voxels), device=device))
    assert int(valid) == plan.voxels
    rounding = 1e-5 if plan.dtype == torch.float32 else 2e-3
    total = 0.0
    for piece in pieces:
        part = logits.detach()[:, :, piece].contiguous().requires_grad_()
        own, _ = margin_calibration(part, labels[:, piece].contiguous(), *values, backend="eager", reduction="sum")
        total += float(own.detach())
        own.backward()
        torch.testing.assert_close(logits.grad[:, :, piece], part.grad, rtol=rounding, atol=rounding / 10)
    expected, found = total / plan.voxels, float(loss.detach())
    if abs(found - expected) > 2e-5 * expected:
        raise AssertionError(f"found the loss {found} for the whole, expected {expected}, that of its pieces")
