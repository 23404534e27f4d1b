"""The margin-calibrated log-loss and its gradient, block of voxels by block of voxels, in plain tensor operations.

With lambda_k = s_k - max_{j != k} s_j, i1 and i2 the classes of the two largest logits (the first index wins a tie), sigma the
logistic function, and every difference of logits times ln 2 for base 2, a voxel of class y has

    loss   = w+_y softplus(rho_y0 - lambda_y) + sum_{k != y} w-_k softplus(lambda_k + rho_0k)          (over ln 2 for base 2)
    g_y    = -w+_y sigma(rho_y0 - lambda_y),         g_k = w-_k sigma(lambda_k + rho_0k)  for k != y
    dL/ds  = g, but at i2: g_i2 - g_i1, and at i1: g_i1 - sum_{k != i1} g_k

because lambda_i1 depends on s_i2 and every other lambda_k on s_i1. Soft labels y_k weigh both terms of every class, by y_k and
by 1 - y_k.

A block is small enough for its few temporaries to stay in the cache, so memory beside the logits is the gradient and little
else, and each block is read from the logits once. Everything is computed in float32 (float64 for float64 logits), widened
before the first subtraction: bfloat16 spaces logits above 4 by 0.03, as wide as a margin.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch

from .targets import class_labels, soft_labels

__all__ = ["LARGEST_LOGIT_EXPONENT", "ClassTerms", "Reading", "blockwise_loss", "count_valid"]

#: logits beyond 2^100, infinite ones included, count as 2^100: differences, and sums over a block of voxels, stay finite
LARGEST_LOGIT_EXPONENT = 100
_LARGEST_EXPONENT_FLOAT64 = 1000
#: elements of one block and one thread: three float32 buffers of this size fill 0.75 MiB, within the L2 cache of current cores
_ELEMENTS_PER_THREAD = 65536
#: on an accelerator a block has to fill the device, not a cache
_ELEMENTS_ON_DEVICE = 1 << 26


class ClassTerms(NamedTuple):
    """What the loss asks of every class: four tensors of shape (C,), in the dtype of the computation."""

    margin_negative: torch.Tensor
    margin_positive: torch.Tensor
    negative_weight: torch.Tensor
    positive_weight: torch.Tensor


class Reading(NamedTuple):
    """How a target is to be read; `targets` has the rules.

    ``class_mask`` is bool (B, C), False for a class that was not annotated in a case: it has no terms and does not compete.
    A case with fewer than two annotated classes has no margins, so its voxels count as ignored.
    """

    holds_indices: bool
    num_classes: int
    ignore_index: int | None = None
    class_mask: torch.Tensor | None = None
    names: str = ""


def blockwise_loss(
    logits: torch.Tensor,
    target: torch.Tensor,
    reading: Reading,
    terms: ClassTerms,
    natural: bool,
    loss_map: torch.Tensor | None = None,
    gradient: torch.Tensor | None = None,
    gradient_scale: torch.Tensor | None = None,
) -> torch.Tensor:
    """Sum of the loss over all valid voxels; on request the loss per voxel and the gradient of the logits.

    Args:
        logits: (B, N, *spatial), any strides; N = 1 stands for two classes with the logits 0 and s.
        target: (B, 1, *spatial) class indices, or (B, N, *spatial) soft labels.
        reading: how to read it.
        terms: margins and weights per class.
        natural: natural logarithm; otherwise base 2.
        loss_map: (B, 1, *spatial), is filled with the loss of every voxel.
        gradient: like ``logits``, is filled with the gradient.
        gradient_scale: what to multiply the gradient by: one number, or one per voxel (B, 1, *spatial). Default 1.

    Returns:
        the sum, a float64 scalar.

    Raises:
        ValueError: see `targets`; a voxel is labelled with a class that was not annotated in its case.
    """
    per_voxel = gradient_scale is not None and gradient_scale.ndim > 0
    workspace = _Workspace(logits, reading.num_classes, terms, natural, None if per_voxel else gradient_scale)
    total = torch.zeros((), dtype=torch.float64, device=logits.device)
    for block in _blocks(logits, workspace.voxels):
        labels, valid = _read_target(target, block, reading)
        if valid is not None and logits.device.type == "cpu" and not bool(valid.any()):
            for filled in (loss_map, gradient):
                if filled is not None:
                    filled[block] = 0
            continue
        annotated = None if reading.class_mask is None else reading.class_mask[block[0], :, None]
        losses, slopes = workspace.compute(
            logits[block], labels, valid, annotated, reading.holds_indices, gradient is not None
        )
        total += losses.sum(dtype=torch.float64)
        if loss_map is not None:
            loss_map[block] = losses.view(loss_map[block].shape)
        if gradient is not None and slopes is not None:
            if per_voxel and gradient_scale is not None:
                slopes = slopes * gradient_scale[block].reshape(losses.shape)
                if valid is not None:  # 0 times an infinite scale
                    slopes = slopes.masked_fill(~valid, 0)
            gradient[block] = slopes.view(gradient[block].shape)
    return total


def count_valid(logits: torch.Tensor, target: torch.Tensor, reading: Reading) -> int:
    """Number of voxels that count; raises for a target that `blockwise_loss` refuses."""
    if reading.ignore_index is None and reading.class_mask is None:
        return logits.numel() // logits.shape[1]
    count = 0
    for block in _blocks(logits, _voxels_per_block(logits, reading.num_classes)):
        labels, valid = _read_target(target, block, reading)
        count += labels[:, :1].numel() if valid is None else int(valid.sum())
    return count


def _voxels_per_block(logits: torch.Tensor, num_classes: int) -> int:
    elements = _ELEMENTS_PER_THREAD * torch.get_num_threads() if logits.device.type == "cpu" else _ELEMENTS_ON_DEVICE
    return max(1, elements // num_classes)


def _blocks(logits: torch.Tensor, voxels: int) -> Iterator[tuple[slice, ...]]:
    """Index tuples (batch, channels, *spatial) of blocks of at most ``voxels`` voxels that together cover the tensor."""
    sizes = (logits.shape[0], *logits.shape[2:])
    if 0 in sizes:
        return
    # the innermost dimensions that fit whole; the next one is cut, the outer ones are walked one by one
    inner, cut = 1, len(sizes) - 1
    while cut > 0 and inner * sizes[cut] <= voxels:
        inner *= sizes[cut]
        cut -= 1
    step = max(1, voxels // inner)
    whole = tuple(slice(None) for _ in sizes[cut + 1 :])
    for outer in _positions(sizes[:cut]):
        for start in range(0, sizes[cut], step):
            block = (*outer, slice(start, start + step), *whole)
            yield (block[0], slice(None), *block[1:])


def _positions(sizes: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    if not sizes:
        yield ()
        return
    for position in range(sizes[0]):
        for rest in _positions(sizes[1:]):
            yield (slice(position, position + 1), *rest)


def _read_target(
    target: torch.Tensor, block: tuple[slice, ...], reading: Reading
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Labels (b, 1 or C, L) of a block and which of its voxels are valid (b, 1, L), None where all are."""
    part = target[block].flatten(2) if target.ndim > 2 else target[block].unsqueeze(-1)
    classes, ignore_index = reading.num_classes, reading.ignore_index
    if reading.holds_indices:
        labels, valid = class_labels(part, classes, ignore_index, reading.names)
    else:
        labels, valid = soft_labels(part, classes, ignore_index, torch.promote_types(part.dtype, torch.float32))
    if reading.class_mask is not None:
        annotated = reading.class_mask[block[0]]
        enough = (annotated.sum(dim=1) >= 2)[:, None, None]
        valid = enough.expand(-1, 1, labels.shape[2]) if valid is None else valid & enough
        _refuse_unannotated(labels, valid, annotated, reading)
    if valid is not None and target.device.type == "cpu" and bool(valid.all()):
        valid = None
    return labels, valid


def _refuse_unannotated(labels: torch.Tensor, valid: torch.Tensor, annotated: torch.Tensor, reading: Reading) -> None:
    if reading.holds_indices:
        known = annotated.gather(1, labels[:, 0]).unsqueeze(1)
        wrong = valid & ~known
        found = labels[wrong]
    else:
        carried = (labels != 0) & ~annotated[:, :, None] & valid
        wrong = carried.any(dim=1)
        found = carried.any(dim=2).nonzero()[:, 1]
    if bool(wrong.any()):
        raise ValueError(
            f"target labels voxels with the class(es) {sorted(set(found.tolist()))} in a case where class_mask says "
            "that they were not annotated: expected class_mask True for every class that a case's target holds"
        )


class _Workspace:
    """Buffers of one block, used again for every block, and the constants of the classes."""

    def __init__(
        self,
        logits: torch.Tensor,
        num_classes: int,
        terms: ClassTerms,
        natural: bool,
        gradient_scale: torch.Tensor | None,
    ) -> None:
        self.dtype = terms.margin_negative.dtype
        self.voxels = _voxels_per_block(logits, num_classes)
        self.classes = num_classes
        # log2(1 + 2^z) = softplus(z ln 2) / ln 2: only the differences are scaled, so base e costs no multiplication more
        self.unit = 1.0 if natural else math.log(2.0)
        self.terms = terms
        voxels = min(self.voxels, max(1, logits.numel() // max(1, logits.shape[1])))
        self.buffers = torch.empty(3, num_classes * voxels, dtype=self.dtype, device=logits.device)
        self.negative_offset = (-self.unit * terms.margin_negative)[:, None]
        scale = terms.negative_weight.new_ones(()) if gradient_scale is None else gradient_scale.to(self.dtype)
        self.negative_slope = (terms.negative_weight * scale)[:, None]
        self.positive_slope = terms.positive_weight * scale
        self.largest = 2.0 ** (LARGEST_LOGIT_EXPONENT if self.dtype == torch.float32 else _LARGEST_EXPONENT_FLOAT64)

    def compute(
        self,
        logits: torch.Tensor,
        labels: torch.Tensor,
        valid: torch.Tensor | None,
        annotated: torch.Tensor | None,
        holds_indices: bool,
        want_gradient: bool,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Loss (b, 1, L) and gradient (b, N, L) of one block; the gradient lives in a buffer of this workspace."""
        on_cpu = logits.device.type == "cpu"
        step = self._hard if holds_indices else self._soft
        # a device would have to be waited for, so there the logits are clamped always
        result = step(self._load(logits, valid, annotated, clamp=not on_cpu), labels, valid, annotated, want_gradient)
        if on_cpu and not float(result[0].sum()) < self.largest / 4:  # NaN included
            result = step(self._load(logits, valid, annotated, clamp=True), labels, valid, annotated, want_gradient)
        losses, slopes = result
        return losses, slopes if slopes is None else slopes[:, -logits.shape[1] :]

    def _load(
        self, logits: torch.Tensor, valid: torch.Tensor | None, annotated: torch.Tensor | None, clamp: bool
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        size = logits.numel() // logits.shape[1] * self.classes
        shape = (logits.shape[0], self.classes, size // (logits.shape[0] * self.classes))
        scores, other, third = (self.buffers[i, :size].view(shape) for i in range(3))
        if logits.shape[1] == 1:
            scores[:, 0] = 0
            scores[:, 1:].copy_(logits.reshape(shape[0], 1, shape[2]))
        else:
            scores.view(logits.shape).copy_(logits)
        if valid is not None:  # whatever an ignored voxel holds, NaN included
            scores.masked_fill_(~valid, 0)
        if clamp:
            scores.clamp_(-self.largest, self.largest)
        if annotated is not None:
            scores.masked_fill_(~annotated, -math.inf)
        return scores, other, third

    def _top_two(self, scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Turn scores into margins in place; returns the largest score, the gap to the second, and both classes."""
        largest, first = scores.max(dim=1, keepdim=True)
        scores.scatter_(1, first, -math.inf)
        runner_up, second = scores.max(dim=1, keepdim=True)
        gap = largest - runner_up
        scores.sub_(largest).scatter_(1, first, gap)
        return largest, gap, first, second

    def _hard(
        self,
        buffers: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
        labels: torch.Tensor,
        valid: torch.Tensor | None,
        annotated: torch.Tensor | None,
        want_gradient: bool,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        scores, other, third = buffers
        _, _, first, second = self._top_two(scores)
        positive = scores.gather(1, labels).mul_(self.unit)
        positive.sub_(self.terms.margin_positive[labels], alpha=self.unit)
        # every class as a negative, except that the true one is sent to infinity, where term and slope are exactly 0
        distance = torch.sub(self.negative_offset, scores, alpha=self.unit, out=scores)
        distance.scatter_(1, labels, math.inf)
        log_sigmoid, tail = _log_sigmoid(distance, other, third)
        losses = _weighted_sum(log_sigmoid, self.terms.negative_weight)
        positive_log, positive_tail = _log_sigmoid(positive, torch.empty_like(positive), torch.empty_like(positive))
        losses.addcmul_(positive_log, self.terms.positive_weight[labels])
        losses.mul_(-1.0 / self.unit)
        if valid is not None:
            losses.masked_fill_(~valid, 0)
        if not want_gradient:
            return losses, None
        slopes = _sigmoid_slope(self.negative_slope, distance, tail, out=log_sigmoid)
        positive_slope = _sigmoid_slope(self.positive_slope[labels], positive, positive_tail, out=positive_log).neg_()
        total = slopes.sum(dim=1, keepdim=True).add_(positive_slope)
        slopes.scatter_(1, labels, positive_slope)
        return losses, _through_the_maximum(slopes, total, first, second, valid)

    def _soft(
        self,
        buffers: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
        labels: torch.Tensor,
        valid: torch.Tensor | None,
        annotated: torch.Tensor | None,
        want_gradient: bool,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        scores, other, third = buffers
        _, _, first, second = self._top_two(scores)
        labels = labels.to(self.dtype)
        sides = []
        for sign, margin, weight, slope in (
            (1.0, self.terms.margin_positive, self.terms.positive_weight, self.positive_slope),
            (-1.0, self.terms.margin_negative, self.terms.negative_weight, self.negative_slope[:, 0]),
        ):
            distance = torch.sub(scores, sign * margin[:, None]).mul_(sign * self.unit)
            if annotated is not None:
                distance.masked_fill_(~annotated, math.inf)
            share = labels if sign > 0 else 1 - labels
            log_sigmoid, tail = _log_sigmoid(distance, other, third)
            losses = (log_sigmoid * share).mul_(weight[:, None]).sum(dim=1, keepdim=True)
            slopes = None
            if want_gradient:
                slopes = _sigmoid_slope(share * slope[:, None], distance, tail, out=torch.empty_like(distance)).mul_(
                    -sign
                )
            sides.append((losses, slopes))
        losses = (sides[0][0] + sides[1][0]).mul_(-1.0 / self.unit)
        if valid is not None:
            losses.masked_fill_(~valid, 0)
        if not want_gradient or sides[0][1] is None or sides[1][1] is None:
            return losses, None
        slopes = sides[0][1].add_(sides[1][1])
        return losses, _through_the_maximum(slopes, slopes.sum(dim=1, keepdim=True), first, second, valid)


def _through_the_maximum(
    slopes: torch.Tensor, total: torch.Tensor, first: torch.Tensor, second: torch.Tensor, valid: torch.Tensor | None
) -> torch.Tensor:
    """Slopes with respect to the margins -> gradient of the logits, in place."""
    top = slopes.gather(1, first)
    slopes.scatter_add_(1, first, top - total)
    slopes.scatter_add_(1, second, top.neg_())
    return slopes if valid is None else slopes.masked_fill_(~valid, 0)


def _weighted_sum(values: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return values.mul_(weight[:, None]).sum(dim=1, keepdim=True)


def _log_sigmoid(distance: torch.Tensor, output: torch.Tensor, tail: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """log(sigma(x)) = min(x, 0) - log1p(e^-|x|), one fused pass that on a CPU also keeps e^-|x| for the slope."""
    return torch.ops.aten.log_sigmoid_forward.output(distance, output=output, buffer=tail)


def _sigmoid_slope(weight: torch.Tensor, distance: torch.Tensor, tail: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """Weight times sigma(-x), from the parts that `_log_sigmoid` left."""
    return torch.ops.aten.log_sigmoid_backward.grad_input(weight, distance, tail, grad_input=out)
