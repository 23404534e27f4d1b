"""The margin-calibrated log-loss and its gradient of one block of voxels, in plain tensor operations.

With lambda_k = s_k - max_{j != k} s_j, i1 and i2 the classes of the two largest logits (the first index wins a tie), sigma the
logistic function, and every difference of logits times ln 2 for base 2, a voxel of class y has

    loss   = w+_y softplus(rho_y0 - lambda_y) + sum_{k != y} w-_k softplus(lambda_k + rho_0k)          (over ln 2 for base 2)
    g_y    = -w+_y sigma(rho_y0 - lambda_y),         g_k = w-_k sigma(lambda_k + rho_0k)  for k != y
    dL/ds  = g, but at i2: g_i2 - g_i1, and at i1: g_i1 - sum_{k != i1} g_k

because lambda_i1 depends on s_i2 and every other lambda_k on s_i1. Soft labels y_k weight both terms of every class, by y_k and
by 1 - y_k.

Everything is computed in float32 (float64 for float64 logits), widened before the first subtraction: bfloat16 spaces logits above
4 by 0.03, as wide as a margin.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

__all__ = ["LARGEST_LOGIT_EXPONENT", "ClassTerms", "Workspace"]

#: logits beyond 2^100, infinite ones included, count as 2^100: differences, and sums over a block of voxels, stay finite
LARGEST_LOGIT_EXPONENT = 100
_LARGEST_EXPONENT_FLOAT64 = 1000


class ClassTerms(NamedTuple):
    """What the loss needs to know of every class: four tensors of shape (C,), in the dtype of the computation."""

    margin_negative: torch.Tensor
    margin_positive: torch.Tensor
    negative_weight: torch.Tensor
    positive_weight: torch.Tensor


class _Buffers(NamedTuple):
    """Memory of one block, (b, C, L) each."""

    scores: torch.Tensor
    log_sigmoid: torch.Tensor
    tail: torch.Tensor
    first: torch.Tensor
    second: torch.Tensor


class Workspace:
    """Buffers of one block, used again for every block, and the constants of the classes."""

    def __init__(
        self,
        logits: torch.Tensor,
        terms: ClassTerms,
        *,
        voxels: int,
        base_e: bool,
        gradient_scale: torch.Tensor | None,
        only_softmax: bool = False,
    ) -> None:
        self.dtype = terms.margin_negative.dtype
        self.classes = terms.margin_negative.shape[0]
        # log2(1 + 2^z) = softplus(z ln 2) / ln 2: only the differences are scaled, so base e costs no extra multiplication
        self.unit = 1.0 if base_e else math.log(2.0)
        self.terms = terms
        voxels = min(voxels, max(1, logits.numel() // max(1, logits.shape[1])))
        self.buffers = torch.empty(
            1 if only_softmax else 5, self.classes * voxels, dtype=self.dtype, device=logits.device
        )
        self.negative_offset = -self.unit * terms.margin_negative
        self.positive_offset = -self.unit * terms.margin_positive
        scale = terms.negative_weight.new_ones(()) if gradient_scale is None else gradient_scale.to(self.dtype)
        self.negative_slope = terms.negative_weight * scale
        self.positive_slope = terms.positive_weight * scale
        self.largest = 2.0 ** (LARGEST_LOGIT_EXPONENT if self.dtype == torch.float32 else _LARGEST_EXPONENT_FLOAT64)
        # looking for ties would mean waiting for a device, and half precision has them in every block
        self.on_cpu = logits.device.type == "cpu"
        self.expects_ties = not self.on_cpu or logits.dtype in (torch.float16, torch.bfloat16)

    def compute(
        self,
        logits: torch.Tensor,
        labels: torch.Tensor,
        valid: torch.Tensor | None,
        annotated: torch.Tensor | None,
        *,
        holds_indices: bool,
        want_gradient: bool,
        softmax: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Loss (b, 1, L) and gradient (b, N, L) of one block; the gradient lives in a buffer of this workspace.

        ``softmax`` (b, C, L) is filled with the probabilities, whatever they are in voxels that do not count.
        """
        step = self._soft if not holds_indices else self._two_classes if self.classes == 2 else self._hard
        # clamped from the start only where a look at the result would have to wait for the device
        buffers = _Buffers(*self._views(logits))
        for clamp in (not self.on_cpu, True):
            scores = self._load(logits, valid, annotated, clamp)
            if softmax is not None:
                torch.softmax(scores, dim=1, out=softmax)
            losses, slopes = step(buffers, labels, valid, annotated, want_gradient=want_gradient)
            if clamp or float(losses.sum()) < self.largest / 4:  # not so for NaN
                break
        return losses, slopes if slopes is None else slopes[:, -logits.shape[1] :]

    def softmax(
        self,
        logits: torch.Tensor,
        valid: torch.Tensor | None,
        annotated: torch.Tensor | None,
        out: torch.Tensor,
    ) -> None:
        """Fill ``out`` (b, C, L) with the probabilities of a block, and compute nothing else."""
        for clamp in (not self.on_cpu, True):
            torch.softmax(self._load(logits, valid, annotated, clamp), dim=1, out=out)
            if clamp or not math.isnan(float(out.sum())):
                break

    def _load(
        self, logits: torch.Tensor, valid: torch.Tensor | None, annotated: torch.Tensor | None, clamp: bool
    ) -> torch.Tensor:
        """The scores of a block, in the first of the buffers."""
        scores = self._views(logits)[0]
        shape = scores.shape
        if logits.shape[1] == 1:
            scores[:, 0] = 0
            scores[:, 1:].copy_(logits.reshape(shape[0], 1, shape[2]))
        else:
            scores.view(logits.shape).copy_(logits)
        if clamp:
            scores.clamp_(-self.largest, self.largest)
        if annotated is not None:
            scores.masked_fill_(~annotated, -math.inf)
        if (
            valid is not None
        ):  # whatever an ignored voxel holds, NaN included; 2, 1, 0, 0, ... has no ties in the top two
            ignored = ~valid
            scores.masked_fill_(ignored, 0)
            scores[:, :1].masked_fill_(ignored, 2)
            scores[:, 1:2].masked_fill_(ignored, 1)
        return scores

    def _views(self, logits: torch.Tensor) -> list[torch.Tensor]:
        """The buffers, each (b, C, L)."""
        size = logits.numel() // logits.shape[1] * self.classes
        shape = (logits.shape[0], self.classes, size // (logits.shape[0] * self.classes))
        return [buffer[:size].view(shape) for buffer in self.buffers]

    def _top_two(self, buffers: _Buffers) -> None:
        """Turn scores into margins, and mark the classes of the largest and of the second largest score with 1 among zeros.

        Comparing with the maximum takes a fraction of the time of finding its index, but marks all of several equal scores. Only
        a block with such a tie is redone by index.
        """
        scores, _, _, first, second = buffers
        largest = scores.amax(dim=1, keepdim=True)
        # found among the scores themselves: next to a far larger one, their differences from it round to the same number
        if self.expects_ties:
            runner_up = self._top_two_by_index(scores, first, second)
        else:
            torch.eq(scores, largest, out=first)
            torch.add(scores, first, alpha=-torch.finfo(self.dtype).max / 2, out=second)
            runner_up = second.amax(dim=1, keepdim=True)
            second.eq_(runner_up)
            marked = first.sum(dim=1).add_(second.sum(dim=1))
            if float(marked.amax()) > 2:
                runner_up = self._top_two_by_index(scores, first, second)
        scores.sub_(largest).addcmul_(first, runner_up - largest, value=-1)

    def _top_two_by_index(self, scores: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Mark the first of the largest and the first of the second largest scores; returns the second largest."""
        top = scores.max(dim=1, keepdim=True).indices
        first.zero_().scatter_(1, top, 1)
        second.copy_(scores).scatter_(1, top, -math.inf)
        runner_up, place = second.max(dim=1, keepdim=True)
        second.zero_().scatter_(1, place, 1)
        return runner_up

    def _hard(
        self,
        buffers: _Buffers,
        labels: torch.Tensor,
        valid: torch.Tensor | None,
        annotated: torch.Tensor | None,
        *,
        want_gradient: bool,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        self._top_two(buffers)
        margins = buffers.scores
        positive = margins.gather(1, labels).mul_(self.unit).add_(_look_up(self.positive_offset, labels))
        # every class as a negative, except that the true one is sent to infinity, where term and slope are exactly 0
        distance = torch.sub(self.negative_offset[:, None], margins, alpha=self.unit, out=margins)
        distance.scatter_(1, labels, torch.full_like(positive, math.inf))
        _log_sigmoid(distance, buffers.log_sigmoid, buffers.tail)
        losses = buffers.log_sigmoid.mul_(self.terms.negative_weight[:, None]).sum(dim=1, keepdim=True)
        positive_log, positive_tail = torch.empty_like(positive), torch.empty_like(positive)
        _log_sigmoid(positive, positive_log, positive_tail)
        losses.add_(positive_log.mul_(_look_up(self.terms.positive_weight, labels))).mul_(-1.0 / self.unit)
        if valid is not None:
            losses.masked_fill_(~valid, 0)
        if not want_gradient:
            return losses, None
        slopes = _sigmoid_slope(self.negative_slope[:, None], distance, buffers.tail, out=buffers.log_sigmoid)
        weight = _look_up(self.positive_slope, labels)
        positive_slope = _sigmoid_slope(weight, positive, positive_tail, out=positive_log).neg_()
        slopes.scatter_(1, labels, positive_slope)
        return losses, _through_the_maximum(slopes, buffers, valid)

    def _two_classes(
        self,
        buffers: _Buffers,
        labels: torch.Tensor,
        valid: torch.Tensor | None,
        annotated: torch.Tensor | None,
        *,
        want_gradient: bool,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Like `_hard`, without its detours: the only rival is the other class, so both terms depend on one difference."""
        scores = buffers.scores
        one = labels.to(self.dtype)
        zero = 1 - one

        def of_true(values: torch.Tensor) -> torch.Tensor:
            return torch.mul(one, values[1]).add_(torch.mul(zero, values[0]))

        def of_wrong(values: torch.Tensor) -> torch.Tensor:
            return torch.mul(one, values[0]).add_(torch.mul(zero, values[1]))

        sign = one - zero
        margin = torch.sub(scores[:, 1:], scores[:, :1]).mul_(sign).mul_(self.unit)  # of the true class
        # row 0 is the true class's term, row 1 the wrong class's
        distance = scores
        torch.add(margin, of_true(self.positive_offset), out=distance[:, :1])
        torch.add(margin, of_wrong(self.negative_offset), out=distance[:, 1:])
        _log_sigmoid(distance, buffers.log_sigmoid, buffers.tail)
        losses = of_true(self.terms.positive_weight).mul_(buffers.log_sigmoid[:, :1])
        losses.add_(of_wrong(self.terms.negative_weight).mul_(buffers.log_sigmoid[:, 1:])).mul_(-1.0 / self.unit)
        if valid is not None:
            losses.masked_fill_(~valid, 0)
        if not want_gradient:
            return losses, None
        weight = buffers.first
        weight[:, :1] = of_true(self.positive_slope)
        weight[:, 1:] = of_wrong(self.negative_slope)
        slopes = _sigmoid_slope(weight, distance, buffers.tail, out=buffers.log_sigmoid)
        torch.add(slopes[:, :1], slopes[:, 1:], out=margin).mul_(sign)
        if valid is not None:
            margin.masked_fill_(~valid, 0)
        slopes[:, :1] = margin
        slopes[:, 1:] = margin.neg_()
        return losses, slopes

    def _soft(
        self,
        buffers: _Buffers,
        labels: torch.Tensor,
        valid: torch.Tensor | None,
        annotated: torch.Tensor | None,
        *,
        want_gradient: bool,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        self._top_two(buffers)
        margins = buffers.scores
        labels = labels.to(self.dtype)
        losses = torch.zeros_like(margins[:, :1])
        slopes = torch.zeros_like(margins) if want_gradient else None
        for sign, offset, weight, slope in (
            (1.0, self.positive_offset, self.terms.positive_weight, self.positive_slope),
            (-1.0, self.negative_offset, self.terms.negative_weight, self.negative_slope),
        ):
            distance = torch.add(offset[:, None], margins, alpha=sign * self.unit)
            if annotated is not None:
                distance.masked_fill_(~annotated, math.inf)
            share = labels if sign > 0 else 1 - labels
            _log_sigmoid(distance, buffers.log_sigmoid, buffers.tail)
            losses += (share * weight[:, None]).mul_(buffers.log_sigmoid).sum(dim=1, keepdim=True)
            if slopes is not None:
                slopes -= sign * _sigmoid_slope(share * slope[:, None], distance, buffers.tail, out=buffers.log_sigmoid)
        losses.mul_(-1.0 / self.unit)
        if valid is not None:
            losses.masked_fill_(~valid, 0)
        return losses, None if slopes is None else _through_the_maximum(slopes, buffers, valid)


def _through_the_maximum(slopes: torch.Tensor, buffers: _Buffers, valid: torch.Tensor | None) -> torch.Tensor:
    """Slopes with respect to the margins -> gradient of the logits, in place."""
    total = slopes.sum(dim=1, keepdim=True)
    top = torch.mul(slopes, buffers.first, out=buffers.tail).sum(dim=1, keepdim=True)
    slopes.addcmul_(buffers.first, top - total)
    slopes.addcmul_(buffers.second, top, value=-1)
    return slopes if valid is None else slopes.masked_fill_(~valid, 0)


def _look_up(values: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The class's value for every voxel; several times as fast as ``values[labels]``."""
    return values.index_select(0, labels.flatten()).view(labels.shape)


def _log_sigmoid(distance: torch.Tensor, output: torch.Tensor, tail: torch.Tensor) -> None:
    """log(sigma(x)) = min(x, 0) - log1p(e^-|x|), one fused pass that on a CPU also keeps e^-|x| for the slope."""
    torch.ops.aten.log_sigmoid_forward.output(distance, output=output, buffer=tail)


def _sigmoid_slope(weight: torch.Tensor, distance: torch.Tensor, tail: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """Weight times sigma(-x), from the parts that `_log_sigmoid` left."""
    return torch.ops.aten.log_sigmoid_backward.grad_input(weight, distance, tail, grad_input=out)
