"""The margin-calibrated log-loss at the speed of memory: Triton kernels that stream over the channels.

Traffic, in units of the logits' bytes: forward reads them once (1) and writes a few numbers per block of voxels; backward
reads them (1) and writes the gradient (1), already multiplied by the incoming gradient. A thread owns a voxel and walks
along its channels, so loads of a block are contiguous along space; it walks them twice (for the two largest, then for the
terms), the second time from the cache.

* The mathematics is that of `blockwise`, where it is derived. Everything is float32: logits are widened on load.
* Offsets are 64-bit: pointers advance by the stride, and voxel numbers are widened before they meet one.
* Strides are taken as they are. Voxels are numbered by an outer index and up to three inner ones, merged where memory allows.
* No float atomics: every block writes its partial sums, one program adds them up in a fixed order. Bitwise repeatable.
* A label outside 0 ... C - 1 never becomes an address. Its voxel is taken out, the loss becomes NaN, and the last kernel
  reports what was found.

`triton_launch` has the calls. Importing this module imports Triton; with TRITON_INTERPRET=1 the kernels run on a CPU.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import triton
import triton.language as tl

from .block import LARGEST_LOGIT_EXPONENT

__all__ = ["backward_kernel", "final_kernel", "forward_kernel"]

_LARGEST = tl.constexpr(float(2.0**LARGEST_LOGIT_EXPONENT))
_LOG2_E = tl.constexpr(1.4426950408889634)
_LN_2 = tl.constexpr(0.6931471805599453)
_INT64_MAX = tl.constexpr(2**63 - 1)
_INT64_MIN = tl.constexpr(-(2**63))


@triton.jit
def _voxel_offsets(number, size1, size2, stride0, stride1, stride2, DIMS: tl.constexpr):
    """Where the voxels with these inner numbers lie, in elements; DIMS of the three inner dimensions are in use."""
    if DIMS == 1:
        return number.to(tl.int64) * stride2
    inner = number % size2
    rest = number // size2
    if DIMS == 2:
        return rest.to(tl.int64) * stride1 + inner.to(tl.int64) * stride2
    middle = rest % size1
    outer = rest // size1
    return outer.to(tl.int64) * stride0 + middle.to(tl.int64) * stride1 + inner.to(tl.int64) * stride2


@triton.jit
def _read_labels(pointer, inside, ignore, C: tl.constexpr, HAS_IGNORE: tl.constexpr, LABELS: tl.constexpr):
    """Labels, which voxels count, which hold an undeclared label, and the labels as int64 for the report.

    LABELS says what they are stored as: 0 integers, 1 floats of up to 32 bits, 2 doubles.
    """
    if LABELS == 0:
        wide = tl.load(pointer, mask=inside, other=0).to(tl.int64)
        whole = wide == wide
    elif LABELS == 1:
        single = tl.load(pointer, mask=inside, other=0).to(tl.float32)
        # what int64 cannot hold is undeclared all the same; it must not wrap into a class
        single_fits = (single > -9.0e18) & (single < 9.0e18)
        wide = tl.where(single_fits, single, -1.0).to(tl.int64)
        whole = single_fits & (wide.to(tl.float32) == single)
    else:
        double = tl.load(pointer, mask=inside, other=0).to(tl.float64)
        double_fits = (double > -9.0e18) & (double < 9.0e18)
        wide = tl.where(double_fits, double, -1.0).to(tl.int64)
        whole = double_fits & (wide.to(tl.float64) == double)
    counted = inside
    if HAS_IGNORE:
        counted = inside & ((wide != ignore) | (whole == 0))
    declared = whole & (wide >= 0) & (wide < C)
    label = tl.where(declared & counted, wide, 0).to(tl.int32)
    return label, counted & declared, counted & (declared == 0), wide


@triton.jit
def _load_logit(pointer, channel, inside, valid, annotated, ONE_CHANNEL: tl.constexpr, HAS_MASK: tl.constexpr):
    """One channel in float32: 0 in voxels that do not count, huge and infinite values brought to a finite size, NaN kept.

    Loaded whether valid or not: a mask that depends on the labels would break the loads up into single elements.
    """
    if ONE_CHANNEL:
        logit = tl.load(pointer, mask=inside & (channel == 1), other=0.0).to(tl.float32)
    else:
        logit = tl.load(pointer, mask=inside, other=0.0).to(tl.float32)
    logit = tl.where(valid, logit, 0.0)
    logit = tl.where(logit > _LARGEST, _LARGEST, logit)
    logit = tl.where(logit < -_LARGEST, -_LARGEST, logit)
    if HAS_MASK:
        logit = tl.where(annotated != 0, logit, -float("inf"))
    return logit


@triton.jit
def _two_largest(
    base,
    annotated_row,
    inside,
    valid,
    channel_stride,
    C: tl.constexpr,
    BLOCK: tl.constexpr,
    ONE_CHANNEL: tl.constexpr,
    HAS_MASK: tl.constexpr,
):
    """Largest and second largest logit of every voxel and their channels; the first of equal ones wins."""
    annotated = 1
    if HAS_MASK:
        annotated = tl.load(annotated_row)
    largest = _load_logit(base, 0, inside, valid, annotated, ONE_CHANNEL, HAS_MASK)
    second = tl.full([BLOCK], -float("inf"), tl.float32)
    first_class = tl.zeros([BLOCK], tl.int32)
    second_class = tl.zeros([BLOCK], tl.int32)
    pointer = base
    for c in tl.range(1, C, loop_unroll_factor=4):
        if not ONE_CHANNEL:
            pointer += channel_stride
        if HAS_MASK:
            annotated = tl.load(annotated_row + c)
        logit = _load_logit(pointer, c, inside, valid, annotated, ONE_CHANNEL, HAS_MASK)
        above = logit > largest
        # the second channel comes second whatever it holds: NaN and -inf never compare as greater
        between = (logit > second) | (c == 1)
        second_class = tl.where(above, first_class, tl.where(between, c, second_class))
        second = tl.where(above, largest, tl.where(between, logit, second))
        first_class = tl.where(above, c, first_class)
        largest = tl.where(above, logit, largest)
    return largest, second, first_class, second_class


@triton.jit
def _excess(
    logit,
    largest,
    second,
    is_first,
    is_true,
    c,
    negative_ptr,
    negative_stride,
    positive_ptr,
    positive_stride,
    NATURAL: tl.constexpr,
):
    """Rho - lambda for the true class, lambda + rho for the others; the loss is log2(1 + 2^z) of it."""
    margin = logit - tl.where(is_first, second, largest)
    rho_negative = tl.load(negative_ptr + c * negative_stride).to(tl.float32)
    rho_positive = tl.load(positive_ptr + c * positive_stride).to(tl.float32)
    excess = tl.where(is_true, rho_positive - margin, margin + rho_negative)
    if NATURAL:
        excess *= _LOG2_E
    return excess


@triton.jit
def _weight(is_true, c, negative_ptr, negative_stride, positive_ptr, positive_stride, BACKGROUND: tl.constexpr):
    negative = tl.load(negative_ptr + c * negative_stride).to(tl.float32)
    positive = tl.load(positive_ptr + c * positive_stride).to(tl.float32)
    weight = tl.where(is_true, positive, negative)
    if not BACKGROUND:
        weight = tl.where(c == 0, 0.0, weight)
    return weight


@triton.jit
def forward_kernel(
    logits_ptr,
    target_ptr,
    map_ptr,
    mask_ptr,
    rho_negative_ptr,
    rho_positive_ptr,
    weight_negative_ptr,
    weight_positive_ptr,
    sums_ptr,
    counts_ptr,
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
    HAS_MAP: tl.constexpr,
    BACKGROUND: tl.constexpr,
    NATURAL: tl.constexpr,
):
    """Partial sums of one block of voxels: loss, valid voxels, undeclared labels; the loss per voxel where asked for."""
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
    mask_row = mask_ptr
    if HAS_MASK:
        mask_row = mask_ptr + outer * C
        number_annotated = 0
        for c in tl.range(0, C):
            number_annotated += tl.load(mask_row + c).to(tl.int32)
        # a voxel of a class that was not annotated is as wrong as an undeclared one, in a case that counts at all
        enough = number_annotated >= 2
        annotated_label = tl.load(mask_row + label, mask=valid, other=1) != 0
        bad = (bad | (valid & (annotated_label == 0))) & enough
        valid = valid & annotated_label & enough
    base = logits_ptr + outer * logits_outer + where_logits
    largest, second, first_class, _ = _two_largest(
        base, mask_row, inside, valid, logits_channel, C, BLOCK, ONE_CHANNEL, HAS_MASK
    )
    loss = tl.zeros([BLOCK], tl.float32)
    pointer = base
    for c in tl.range(0, C, loop_unroll_factor=4):
        annotated = 1
        if HAS_MASK:
            annotated = tl.load(mask_row + c)
        logit = _load_logit(pointer, c, inside, valid, annotated, ONE_CHANNEL, HAS_MASK)
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
    if HAS_MAP:
        shown = tl.where(bad, float("nan"), loss)
        tl.store(map_ptr + outer * size + number, shown, mask=inside)
    # four rows of integers: valid voxels, undeclared labels, the smallest and the largest of them
    programs = tl.num_programs(0)
    tl.store(sums_ptr + program, tl.sum(loss, axis=0))
    tl.store(counts_ptr + program, tl.sum(valid.to(tl.int32), axis=0))
    tl.store(counts_ptr + programs + program, tl.sum(bad.to(tl.int32), axis=0))
    tl.store(counts_ptr + 2 * programs + program, tl.min(tl.where(bad, wide, _INT64_MAX), axis=0))
    tl.store(counts_ptr + 3 * programs + program, tl.max(tl.where(bad, wide, _INT64_MIN), axis=0))


@triton.jit
def final_kernel(
    sums_ptr,
    counts_ptr,
    loss_ptr,
    valid_ptr,
    report_ptr,
    partials,
    MEAN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Add up the partial results in a fixed order, in float64, and report undeclared labels to the host."""
    total = tl.zeros([BLOCK], tl.float64)
    count = tl.zeros([BLOCK], tl.int64)
    bad = tl.zeros([BLOCK], tl.int64)
    for start in tl.range(0, partials, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < partials
        total += tl.load(sums_ptr + at, mask=inside, other=0.0).to(tl.float64)
        count += tl.load(counts_ptr + at, mask=inside, other=0)
        bad += tl.load(counts_ptr + partials + at, mask=inside, other=0)
    loss = tl.sum(total, axis=0)
    valid = tl.sum(count, axis=0)
    undeclared = tl.sum(bad, axis=0)
    if MEAN:
        loss = loss / tl.maximum(valid, 1).to(tl.float64)
    if undeclared > 0:
        loss = loss * float("nan")
        low = tl.full([BLOCK], _INT64_MAX, tl.int64)
        high = tl.full([BLOCK], _INT64_MIN, tl.int64)
        for start in tl.range(0, partials, BLOCK):
            at = start + tl.arange(0, BLOCK)
            inside = at < partials
            low = tl.minimum(low, tl.load(counts_ptr + 2 * partials + at, mask=inside, other=_INT64_MAX))
            high = tl.maximum(high, tl.load(counts_ptr + 3 * partials + at, mask=inside, other=_INT64_MIN))
        tl.store(report_ptr + 1, tl.min(low, axis=0))
        tl.store(report_ptr + 2, tl.max(high, axis=0))
        tl.store(report_ptr, undeclared)
    tl.store(loss_ptr, loss.to(tl.float32))
    tl.store(valid_ptr, valid)


@triton.jit
def _slope(
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
    BACKGROUND: tl.constexpr,
    NATURAL: tl.constexpr,
):
    """g_c: weight times the logistic function, negative for the true class."""
    z = _excess(
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
        NATURAL,
    )
    weight = _weight(
        is_true,
        c,
        weight_negative_ptr,
        weight_negative_stride,
        weight_positive_ptr,
        weight_positive_stride,
        BACKGROUND,
    )
    tail = tl.exp2(-tl.abs(z))
    sigma = tl.where(z >= 0, 1.0, tail) / (1.0 + tail)
    sigma = tl.where(z == z, sigma, z)
    slope = tl.where(weight == 0.0, 0.0, weight * sigma)
    return tl.where(is_true, -slope, slope)


@triton.jit
def backward_kernel(
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
    HAS_MAP: tl.constexpr,
    BACKGROUND: tl.constexpr,
    NATURAL: tl.constexpr,
    MEAN: tl.constexpr,
    TWICE: tl.constexpr,
):
    """Gradient of the logits of one block of voxels, times the incoming gradient."""
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
    label, valid, _, _ = _read_labels(
        target_ptr + outer * target_outer + where_target, inside, ignore, C, HAS_IGNORE, LABELS
    )
    mask_row = mask_ptr
    if HAS_MASK:
        mask_row = mask_ptr + outer * C
        number_annotated = 0
        for c in tl.range(0, C):
            number_annotated += tl.load(mask_row + c).to(tl.int32)
        valid = valid & (tl.load(mask_row + label, mask=valid, other=1) != 0) & (number_annotated >= 2)
    if HAS_MAP:
        scale = tl.load(incoming_ptr + outer * size + number, mask=inside, other=0.0).to(tl.float32)
    else:
        scale = tl.load(incoming_ptr).to(tl.float32) + tl.zeros([BLOCK], tl.float32)
    if MEAN:
        scale = scale / tl.maximum(tl.load(valid_ptr), 1).to(tl.float32)
    base = logits_ptr + outer * logits_outer + where_logits
    target_base = gradient_ptr + outer * gradient_outer + where_gradient
    largest, second, first_class, second_class = _two_largest(
        base, mask_row, inside, valid, logits_channel, C, BLOCK, ONE_CHANNEL, HAS_MASK
    )
    # sum of the slopes of all classes but the first, and the slopes of the first and the second
    rest = tl.zeros([BLOCK], tl.float32)
    first_slope = tl.zeros([BLOCK], tl.float32)
    second_slope = tl.zeros([BLOCK], tl.float32)
    pointer = base
    out = target_base
    for c in tl.range(0, C, loop_unroll_factor=4):
        annotated = 1
        if HAS_MASK:
            annotated = tl.load(mask_row + c)
        logit = _load_logit(pointer, c, inside, valid, annotated, ONE_CHANNEL, HAS_MASK)
        is_first = first_class == c
        slope = _slope(
            logit,
            largest,
            second,
            is_first,
            label == c,
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
        if not TWICE:
            tl.store(out, tl.where(valid, slope * scale, 0.0).to(gradient_ptr.dtype.element_ty), mask=inside)
        if not ONE_CHANNEL:
            pointer += logits_channel
            out += gradient_channel
    if TWICE:
        pointer = base
        out = target_base
        for c in tl.range(0, C, loop_unroll_factor=4):
            annotated = 1
            if HAS_MASK:
                annotated = tl.load(mask_row + c)
            logit = _load_logit(pointer, c, inside, valid, annotated, ONE_CHANNEL, HAS_MASK)
            is_first = first_class == c
            slope = _slope(
                logit,
                largest,
                second,
                is_first,
                label == c,
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
            result = tl.where(valid, slope * scale, 0.0).to(gradient_ptr.dtype.element_ty)
            if ONE_CHANNEL:
                tl.store(out, result, mask=inside & (c == 1))
            else:
                tl.store(out, result, mask=inside)
                pointer += logits_channel
                out += gradient_channel
    else:
        # the same addresses again, perhaps from other threads of the block
        tl.debug_barrier()
        at_first = target_base + first_class.to(tl.int64) * gradient_channel
        at_second = target_base + second_class.to(tl.int64) * gradient_channel
        first_result = (first_slope - rest) * scale
        second_result = (second_slope - first_slope) * scale
        tl.store(at_first, first_result.to(gradient_ptr.dtype.element_ty), mask=valid)
        tl.store(at_second, second_result.to(gradient_ptr.dtype.element_ty), mask=valid)
