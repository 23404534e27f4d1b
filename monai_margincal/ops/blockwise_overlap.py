"""The margin-calibrated log-loss along with the sums of an overlap loss, block of voxels by block of voxels.

Each block is read from the logits once in the forward and once in the backward pass; beside the logits memory holds their
gradient and the buffers of one block. What is computed for a block is in `block` and `overlap_block`.
"""

from __future__ import annotations

import torch

from .block import ClassTerms, Workspace
from .overlap_block import OverlapForm, overlap_gradient, overlap_sums
from .voxel_blocks import TargetForm, blocks_of, flattened, read_target, voxels_per_block

__all__ = ["blockwise_overlap", "blockwise_overlap_gradient"]


def blockwise_overlap(
    logits: torch.Tensor,
    target: torch.Tensor,
    form: TargetForm,
    terms: ClassTerms | None,
    *,
    overlap: OverlapForm,
    base_e: bool,
    gradient: torch.Tensor | None = None,
    gradient_scale: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Sum of the margin loss over all valid voxels, sums of the overlap loss and number of valid voxels per case.

    Args:
        logits: (B, N, *spatial), any strides; N = 1 stands for two classes with the logits 0 and s.
        target: (B, 1, *spatial) class indices, or (B, N, *spatial) soft labels.
        form: how to read it.
        terms: margins and weights per class; None leaves the margin loss out.
        overlap: which sums.
        base_e: natural logarithm; otherwise base 2.
        gradient: like ``logits``, is filled with the gradient of the margin loss.
        gradient_scale: what to multiply it by, one number.

    Returns:
        the loss, a float64 scalar (0 without ``terms``); the sums, float64 (B, 3, C); the voxels, int64 (B,).

    Raises:
        ValueError: see `targets`; a voxel is labelled with a class that was not annotated in its case.
    """
    sums = torch.zeros(logits.shape[0], 3, form.num_classes, dtype=torch.float64, device=logits.device)
    counted = torch.zeros(logits.shape[0], dtype=torch.int64, device=logits.device)
    total = torch.zeros((), dtype=torch.float64, device=logits.device)
    logits, target, gradient = flattened(logits, target, gradient)
    room = _Room(logits, form, terms, base_e=base_e, gradient_scale=gradient_scale)
    for block in blocks_of(logits, room.voxels):
        cases = block[0]
        labels, valid = read_target(target, block, form)
        if _nothing_counts(valid):
            if gradient is not None:
                gradient[block] = 0
            continue
        counted[cases] += labels[0, 0].numel() if valid is None else valid.sum(dim=(1, 2))
        losses, slopes, probabilities = room.compute(
            logits[block], labels, valid, block, want_gradient=gradient is not None
        )
        if losses is not None:
            total += losses.sum(dtype=torch.float64)
        if gradient is not None and slopes is not None:
            gradient[block] = slopes.view(gradient[block].shape)
        sums[cases] += overlap_sums(probabilities, labels, valid, overlap, holds_indices=form.holds_indices)
    return total, sums, counted


def blockwise_overlap_gradient(
    logits: torch.Tensor,
    target: torch.Tensor,
    form: TargetForm,
    terms: ClassTerms | None,
    *,
    overlap: OverlapForm,
    base_e: bool,
    slopes: torch.Tensor,
    gradient: torch.Tensor,
    gradient_scale: torch.Tensor,
    holds_margin: bool = False,
) -> None:
    """Fill ``gradient`` with that of the sum of both parts.

    Args:
        logits: as for `blockwise_overlap`.
        target: likewise.
        form: likewise.
        terms: likewise.
        overlap: likewise.
        base_e: likewise.
        slopes: derivatives with respect to the hits and the predicted sums, (B, 2, C).
        gradient: like ``logits``.
        gradient_scale: what to multiply the gradient of the margin loss by, one number.
        holds_margin: ``gradient`` is that of the margin loss, to be scaled and added to.
    """
    logits, target, gradient = flattened(logits, target, gradient)
    room = _Room(logits, form, None if holds_margin else terms, base_e=base_e, gradient_scale=gradient_scale)
    for block in blocks_of(logits, room.voxels):
        labels, valid = read_target(target, block, form)
        if _nothing_counts(valid):
            gradient[block] = 0
            continue
        _, of_margin, probabilities = room.compute(logits[block], labels, valid, block, want_gradient=True)
        total = overlap_gradient(
            probabilities, labels, valid, overlap, holds_indices=form.holds_indices, slopes=slopes[block[0]]
        )
        total = total[:, -logits.shape[1] :]
        part = gradient[block]
        if holds_margin:
            total.add_(part.reshape(total.shape).mul_(gradient_scale))
        elif of_margin is not None:
            total.add_(of_margin)
        part.copy_(total.view(part.shape))


class _Room:
    """Where blocks are computed: the workspace of the margin loss, and memory for the probabilities."""

    def __init__(
        self,
        logits: torch.Tensor,
        form: TargetForm,
        terms: ClassTerms | None,
        *,
        base_e: bool,
        gradient_scale: torch.Tensor | None,
    ) -> None:
        self.form = form
        self.with_margin = terms is not None
        self.voxels = voxels_per_block(logits, form.num_classes)
        if terms is None:
            none = torch.zeros(
                form.num_classes, dtype=torch.promote_types(logits.dtype, torch.float32), device=logits.device
            )
            terms = ClassTerms(none, none, none, none)
        self.workspace = Workspace(
            logits,
            terms,
            voxels=self.voxels,
            base_e=base_e,
            gradient_scale=gradient_scale,
            only_softmax=not self.with_margin,
        )
        self.probabilities = torch.empty_like(self.workspace.buffers[0])

    def compute(
        self,
        logits: torch.Tensor,
        labels: torch.Tensor,
        valid: torch.Tensor | None,
        block: tuple[slice, ...],
        *,
        want_gradient: bool,
    ) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor]:
        """Margin loss (b, 1, L), its gradient (b, N, L) and the probabilities (b, C, L) of one block."""
        annotated = None if self.form.class_mask is None else self.form.class_mask[block[0], :, None]
        size = logits.numel() // logits.shape[1] * self.form.num_classes
        probabilities = self.probabilities[:size].view(logits.shape[0], self.form.num_classes, -1)
        if not self.with_margin:
            self.workspace.softmax(logits, valid, annotated, out=probabilities)
            return None, None, probabilities
        losses, slopes = self.workspace.compute(
            logits,
            labels,
            valid,
            annotated,
            holds_indices=self.form.holds_indices,
            want_gradient=want_gradient,
            softmax=probabilities,
        )
        return losses, slopes, probabilities


def _nothing_counts(valid: torch.Tensor | None) -> bool:
    return valid is not None and valid.device.type == "cpu" and not bool(valid.any())
