"""The margin-calibrated log-loss along with the sums of an overlap loss: Triton kernels like those of `triton_kernels`.

The mathematics is that of `block` and `overlap_block`. A thread owns a voxel and walks along its channels three times, the second
and third time from the cache: for the two largest logits; for the terms of the margin loss and the sum of the exponents; for
what needs the probabilities. So in units of the logits' bytes the traffic is that of the margin loss alone: the forward pass
reads 1, the backward pass reads 1 and writes 1.

A block of voxels belongs to one case. It writes three partial sums per class, which are added up in a fixed order.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import triton
import triton.language as tl

from .triton_kernels import _excess, _load_logit, _read_labels, _slope, _two_largest, _voxel_offsets, _weight

__all__ = ["overlap_backward_kernel", "overlap_forward_kernel"]

_LOG2_E = tl.constexpr(1.4426950408889634)
_LN_2 = tl.constexpr(0.6931471805599453)
_INT64_MAX = tl.constexpr(2**63 - 1)
_INT64_MIN = tl.constexpr(-(2**63))


@triton.jit
def _allowed(label, valid, bad, mask_ptr, outer, C: tl.constexpr, HAS_MASK: tl.constexpr):
    """Voxels that count and voxels whose label is wrong, given which classes of the case were annotated; its row of the mask."""
    mask_row = mask_ptr
    if HAS_MASK:
        mask_row = mask_ptr + outer * C
        number_annotated = 0
        for c in tl.range(0, C):
            number_annotated += tl.load(mask_row + c).to(tl.int32)
        enough = number_annotated >= 2
        annotated_label = tl.load(mask_row + label, mask=valid, other=1) != 0
        bad = (bad | (valid & (annotated_label == 0))) & enough
        valid = valid & annotated_label & enough
    return valid, bad, mask_row


@triton.jit
def _annotation(mask_row, c, HAS_MASK: tl.constexpr):
    annotated = 1
    if HAS_MASK:
        annotated = tl.load(mask_row + c)
    return annotated


@triton.jit
def overlap_forward_kernel(
    logits_ptr,
    target_ptr,
    mask_ptr,
    rho_negative_ptr,
    rho_positive_ptr,
    weight_negative_ptr,
    weight_positive_ptr,
    sums_ptr,
    counts_ptr,
    overlap_ptr,
    ignore,
    blocks,
    size,
    size1,
    size2,
    rho_negative_stride,
    rho_positive_stride,
    weight_negative_stride,
    weight_positive_stride,
    logits_outer,
    logits_channel,
    logits_0,
    logits_1,
    logits_2,
    target_outer,
    target_0,
    target_1,
    target_2,
    C: tl.constexpr,
    BLOCK: tl.constexpr,
    DIMS: tl.constexpr,
    WIDE: tl.constexpr,
    ONE_CHANNEL: tl.constexpr,
    HAS_IGNORE: tl.constexpr,
    LABELS: tl.constexpr,
    HAS_MASK: tl.constexpr,
    BACKGROUND: tl.constexpr,
    NATURAL: tl.constexpr,
    MARGIN: tl.constexpr,
    SQUARED: tl.constexpr,
):
    """Partial sums of one block of voxels: loss, counts and labels as in `forward_kernel`; those of the overlap per class."""
    program = tl.program_id(0)
    outer = (program // blocks).to(tl.int64)
    start = program % blocks
    if WIDE:
        start = start.to(tl.int64)
    number = start * BLOCK + tl.arange(0, BLOCK)
    inside = number < size
    where_target = _voxel_offsets(number, size1, size2, target_0, target_1, target_2, DIMS)
    where_logits = _voxel_offsets(number, size1, size2, logits_0, logits_1, logits_2, DIMS)
    label, valid, bad, wide = _read_labels(
        target_ptr + outer * target_outer + where_target, inside, ignore, C, HAS_IGNORE, LABELS
    )
    valid, bad, mask_row = _allowed(label, valid, bad, mask_ptr, outer, C, HAS_MASK)
    base = logits_ptr + outer * logits_outer + where_logits
    largest, second, first_class, _ = _two_largest(
        base, mask_row, inside, valid, logits_channel, C, BLOCK, ONE_CHANNEL, HAS_MASK
    )
    loss = tl.zeros([BLOCK], tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    pointer = base
    for c in tl.range(0, C, loop_unroll_factor=4):
        logit = _load_logit(pointer, c, inside, valid, _annotation(mask_row, c, HAS_MASK), ONE_CHANNEL, HAS_MASK)
        total += tl.exp2((logit - largest) * _LOG2_E)
        if MARGIN:
            is_true = label == c
            z = _excess(
                logit,
                largest,
                second,
                first_class == c,
                is_true,
                c,
                rho_negative_ptr,
                rho_negative_stride,
                rho_positive_ptr,
                rho_positive_stride,
                NATURAL,
            )
            tail = tl.exp2(-tl.abs(z))
            # log2(1 + t): the sum rounds small t away, the series (relative error t^4 / 5) does not
            series = tail * (1.0 + tail * (-0.5 + tail * (0.333333333 - 0.25 * tail))) * _LOG2_E
            term = tl.maximum(z, 0.0) + tl.where(tail < 0.015625, series, tl.log2(1.0 + tail))
            # the maximum drops NaN
            term = tl.where(z == z, term, z)
            weight = _weight(
                is_true,
                c,
                weight_negative_ptr,
                weight_negative_stride,
                weight_positive_ptr,
                weight_positive_stride,
                BACKGROUND,
            )
            loss += tl.where(weight == 0.0, 0.0, weight * term)
        if not ONE_CHANNEL:
            pointer += logits_channel
    if NATURAL:
        loss *= _LN_2
    loss = tl.where(valid, loss, 0.0)
    programs = tl.num_programs(0)
    tl.store(sums_ptr + program, tl.sum(loss, axis=0))
    tl.store(counts_ptr + program, tl.sum(valid.to(tl.int32), axis=0))
    tl.store(counts_ptr + programs + program, tl.sum(bad.to(tl.int32), axis=0))
    tl.store(counts_ptr + 2 * programs + program, tl.min(tl.where(bad, wide, _INT64_MAX), axis=0))
    tl.store(counts_ptr + 3 * programs + program, tl.max(tl.where(bad, wide, _INT64_MIN), axis=0))
    pointer = base
    out = overlap_ptr + program.to(tl.int64) * (3 * C)
    for c in tl.range(0, C, loop_unroll_factor=4):
        logit = _load_logit(pointer, c, inside, valid, _annotation(mask_row, c, HAS_MASK), ONE_CHANNEL, HAS_MASK)
        share = tl.where(valid, tl.exp2((logit - largest) * _LOG2_E) / total, 0.0)
        is_true = valid & (label == c)
        tl.store(out + c, tl.sum(tl.where(is_true, share, 0.0), axis=0))
        if SQUARED:
            share = share * share
        tl.store(out + C + c, tl.sum(share, axis=0))
        tl.store(out + 2 * C + c, tl.sum(is_true.to(tl.float32), axis=0))
        if not ONE_CHANNEL:
            pointer += logits_channel


@triton.jit
def overlap_backward_kernel(
    logits_ptr,
    target_ptr,
    gradient_ptr,
    mask_ptr,
    rho_negative_ptr,
    rho_positive_ptr,
    weight_negative_ptr,
    weight_positive_ptr,
    incoming_ptr,
    valid_ptr,
    slopes_ptr,
    ignore,
    blocks,
    size,
    size1,
    size2,
    rho_negative_stride,
    rho_positive_stride,
    weight_negative_stride,
    weight_positive_stride,
    logits_outer,
    logits_channel,
    logits_0,
    logits_1,
    logits_2,
    target_outer,
    target_0,
    target_1,
    target_2,
    gradient_outer,
    gradient_channel,
    gradient_0,
    gradient_1,
    gradient_2,
    C: tl.constexpr,
    BLOCK: tl.constexpr,
    DIMS: tl.constexpr,
    WIDE: tl.constexpr,
    ONE_CHANNEL: tl.constexpr,
    HAS_IGNORE: tl.constexpr,
    LABELS: tl.constexpr,
    HAS_MASK: tl.constexpr,
    BACKGROUND: tl.constexpr,
    NATURAL: tl.constexpr,
    MEAN: tl.constexpr,
    MARGIN: tl.constexpr,
    SQUARED: tl.constexpr,
):
    """Gradient of the logits of one block of voxels for both parts; slopes (cases, 2, C) are those of hits and predicted sums."""
    program = tl.program_id(0)
    outer = (program // blocks).to(tl.int64)
    start = program % blocks
    if WIDE:
        start = start.to(tl.int64)
    number = start * BLOCK + tl.arange(0, BLOCK)
    inside = number < size
    where_target = _voxel_offsets(number, size1, size2, target_0, target_1, target_2, DIMS)
    where_logits = _voxel_offsets(number, size1, size2, logits_0, logits_1, logits_2, DIMS)
    where_gradient = _voxel_offsets(number, size1, size2, gradient_0, gradient_1, gradient_2, DIMS)
    label, valid, bad, _ = _read_labels(
        target_ptr + outer * target_outer + where_target, inside, ignore, C, HAS_IGNORE, LABELS
    )
    valid, bad, mask_row = _allowed(label, valid, bad, mask_ptr, outer, C, HAS_MASK)
    scale = tl.load(incoming_ptr).to(tl.float32)
    if MEAN:
        scale = scale / tl.maximum(tl.load(valid_ptr), 1).to(tl.float32)
    base = logits_ptr + outer * logits_outer + where_logits
    largest, second, first_class, second_class = _two_largest(
        base, mask_row, inside, valid, logits_channel, C, BLOCK, ONE_CHANNEL, HAS_MASK
    )
    of_hits = slopes_ptr + outer * (2 * C)
    of_predicted = of_hits + C
    # sum of the slopes of all classes but the first, and the slopes of the first and the second
    rest = tl.zeros([BLOCK], tl.float32)
    first_slope = tl.zeros([BLOCK], tl.float32)
    second_slope = tl.zeros([BLOCK], tl.float32)
    # sums of exponents, alone, times the slope of the class's own probability, and of the true class's
    total = tl.zeros([BLOCK], tl.float32)
    inner = tl.zeros([BLOCK], tl.float32)
    inner_true = tl.zeros([BLOCK], tl.float32)
    pointer = base
    for c in tl.range(0, C, loop_unroll_factor=4):
        logit = _load_logit(pointer, c, inside, valid, _annotation(mask_row, c, HAS_MASK), ONE_CHANNEL, HAS_MASK)
        is_true = label == c
        exponent = tl.exp2((logit - largest) * _LOG2_E)
        total += exponent
        predicted = tl.load(of_predicted + c)
        if SQUARED:
            inner += 2.0 * predicted * exponent * exponent
        else:
            inner += predicted * exponent
        inner_true += tl.where(is_true, tl.load(of_hits + c) * exponent, 0.0)
        if MARGIN:
            is_first = first_class == c
            slope = _slope(
                logit,
                largest,
                second,
                is_first,
                is_true,
                c,
                rho_negative_ptr,
                rho_negative_stride,
                rho_positive_ptr,
                rho_positive_stride,
                weight_negative_ptr,
                weight_negative_stride,
                weight_positive_ptr,
                weight_positive_stride,
                BACKGROUND,
                NATURAL,
            )
            first_slope = tl.where(is_first, slope, first_slope)
            second_slope = tl.where(second_class == c, slope, second_slope)
            rest += tl.where(is_first, 0.0, slope)
        if not ONE_CHANNEL:
            pointer += logits_channel
    if SQUARED:
        inner = inner / (total * total) + inner_true / total
    else:
        inner = (inner + inner_true) / total
    pointer = base
    out = gradient_ptr + outer * gradient_outer + where_gradient
    for c in tl.range(0, C, loop_unroll_factor=4):
        logit = _load_logit(pointer, c, inside, valid, _annotation(mask_row, c, HAS_MASK), ONE_CHANNEL, HAS_MASK)
        is_true = label == c
        share = tl.exp2((logit - largest) * _LOG2_E) / total
        own = tl.load(of_predicted + c) + tl.zeros([BLOCK], tl.float32)
        if SQUARED:
            own = 2.0 * own * share
        own += tl.where(is_true, tl.load(of_hits + c), 0.0)
        result = share * (own - inner)
        if MARGIN:
            is_first = first_class == c
            slope = _slope(
                logit,
                largest,
                second,
                is_first,
                is_true,
                c,
                rho_negative_ptr,
                rho_negative_stride,
                rho_positive_ptr,
                rho_positive_stride,
                weight_negative_ptr,
                weight_negative_stride,
                weight_positive_ptr,
                weight_positive_stride,
                BACKGROUND,
                NATURAL,
            )
            slope -= tl.where(is_first, rest, 0.0)
            slope -= tl.where(second_class == c, first_slope, 0.0)
            result += slope * scale
        result = tl.where(valid, result, 0.0).to(gradient_ptr.dtype.element_ty)
        if ONE_CHANNEL:
            tl.store(out, result, mask=inside & (c == 1))
        else:
            tl.store(out, result, mask=inside)
            pointer += logits_channel
            out += gradient_channel
