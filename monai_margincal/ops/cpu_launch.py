"""Calls of the compiled kernels for the CPU; the functions have the arguments of their blockwise namesakes.

They take float32 logits and class indices whose voxels lie next to each other in memory; everything else goes to the blockwise
computation. Threads are started for each call and share out the chunks; which of them takes a chunk makes no difference to the
results.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any, NamedTuple

import torch

from .block import ClassTerms
from .blockwise import blockwise_loss
from .blockwise_overlap import blockwise_overlap, blockwise_overlap_gradient
from .cpu_compile import compiled_library
from .overlap_block import OverlapForm
from .voxel_blocks import TargetForm, blocks_of, count_valid, flattened, read_target, voxels_per_block

__all__ = ["compiled_count", "compiled_loss", "compiled_overlap", "compiled_overlap_gradient", "worth_compiling"]

_LABEL_KINDS = {
    torch.bool: 0,
    torch.uint8: 0,
    torch.int8: 1,
    torch.int16: 2,
    torch.int32: 3,
    torch.int64: 4,
    torch.float32: 5,
    torch.float64: 6,
}
#: fewer logits are not worth waiting for a compiler, and fewer voxels of a case leave most of a tile empty
_LEAST_LOGITS = 1 << 15
_LEAST_VOXELS = 512
#: floats in the rows of a tile; it needs three times as many, and they should stay in the first or second cache of a core
_TILE_FLOATS = 4096
_LANES, _MOST_VOXELS = 16, 512
#: float32 and int32 tell all whole numbers below this one apart
_LARGEST_IGNORED = 1 << 24
#: parts of a problem, for threads to share out; each has sums of its own
_CHUNKS = 64
_CHUNKS_AT_ONCE = 4

_POINTER, _LONG, _INT, _FLOAT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.c_float
_POINTERS = (
    "logits target gradient loss_map voxel_scale slopes annotated margin_negative margin_positive weight_negative "
    "weight_positive rows losses counts wrong sums"
)
_LONGS = (
    "voxels channels classes chunks tiles_per_chunk tile logits_case logits_channel target_case gradient_case "
    "gradient_channel ignore"
)
_INTS = "has_ignore label_kind margin want_gradient want_sums want_slopes holds_margin squared"


class _Problem(ctypes.Structure):
    """What ``Problem`` is in the source of the kernels."""

    _fields_ = (
        *((name, _POINTER) for name in _POINTERS.split()),
        *((name, _LONG) for name in _LONGS.split()),
        *((name, _INT) for name in _INTS.split()),
        ("unit", _FLOAT),
        ("scale", _FLOAT),
    )


class _Partial(NamedTuple):
    """Results of all chunks: losses (B, chunks), voxels that count and wrong labels likewise, sums (B, chunks, 3, C)."""

    losses: torch.Tensor
    counts: torch.Tensor
    wrong: torch.Tensor
    sums: torch.Tensor


def worth_compiling(input: torch.Tensor, target: torch.Tensor, holds_indices: bool, ignore_index: int | None) -> bool:
    """Whether the kernels take this and are there; may build them."""
    return (
        holds_indices
        and abs(ignore_index or 0) < _LARGEST_IGNORED
        and input.device.type == "cpu"
        and input.dtype == torch.float32
        and target.dtype in _LABEL_KINDS
        and input.numel() >= max(_LEAST_LOGITS, 1)
        and input.shape[2:].numel() >= _LEAST_VOXELS
        and compiled_library() is not None
    )


def compiled_count(logits: torch.Tensor, target: torch.Tensor, form: TargetForm) -> int:
    """Number of voxels that count; raises for a target that is not as declared."""
    _, flat = flattened(logits, target)
    if (form.ignore_index is None and form.class_mask is None) or not _side_by_side(flat):
        return count_valid(logits, target, form)
    found = _run(None, flat, form, None, classes=form.num_classes)
    return count_valid(logits, target, form) if found.wrong.any() else int(found.counts.sum())


def compiled_loss(
    logits: torch.Tensor,
    target: torch.Tensor,
    form: TargetForm,
    terms: ClassTerms,
    *,
    base_e: bool,
    loss_map: torch.Tensor | None = None,
    gradient: torch.Tensor | None = None,
    gradient_scale: torch.Tensor | None = None,
) -> torch.Tensor:
    """See `blockwise_loss`."""
    flat = flattened(*(logits, target, loss_map, gradient, gradient_scale))
    if not all(_side_by_side(one) for one in flat):
        options = {"loss_map": loss_map, "gradient": gradient, "gradient_scale": gradient_scale}
        return blockwise_loss(logits, target, form, terms, base_e=base_e, **options)
    flat_logits, flat_target, flat_map, flat_gradient, flat_scale = flat
    found = _run(
        flat_logits,
        flat_target,
        form,
        terms,
        base_e=base_e,
        classes=form.num_classes,
        loss_map=flat_map,
        gradient=flat_gradient,
        scale=flat_scale,
    )
    if found.wrong.any():
        _refuse(logits, target, form)
    return found.losses.sum()


def compiled_overlap(
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
    """See `blockwise_overlap`."""
    flat = flattened(logits, target, gradient)
    if not all(_side_by_side(one) for one in flat):
        options = {"gradient": gradient, "gradient_scale": gradient_scale}
        return blockwise_overlap(logits, target, form, terms, overlap=overlap, base_e=base_e, **options)
    flat_logits, flat_target, flat_gradient = flat
    found = _run(
        flat_logits,
        flat_target,
        form,
        terms,
        base_e=base_e,
        classes=form.num_classes,
        gradient=flat_gradient,
        scale=gradient_scale,
        overlap=overlap,
    )
    if found.wrong.any():
        _refuse(logits, target, form)
    return found.losses.sum(), found.sums.sum(dim=1), found.counts.sum(dim=1)


def compiled_overlap_gradient(
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
    """See `blockwise_overlap_gradient`."""
    flat_logits, flat_target, flat_gradient = flat = flattened(logits, target, gradient)
    if not all(_side_by_side(one) for one in flat):
        blockwise_overlap_gradient(
            logits,
            target,
            form,
            terms,
            overlap=overlap,
            base_e=base_e,
            slopes=slopes,
            gradient=gradient,
            gradient_scale=gradient_scale,
            holds_margin=holds_margin,
        )
        return
    _run(
        flat_logits,
        flat_target,
        form,
        None if holds_margin else terms,
        base_e=base_e,
        classes=form.num_classes,
        gradient=flat_gradient,
        scale=gradient_scale,
        overlap=overlap,
        slopes=slopes.to(torch.float32).contiguous(),
        holds_margin=holds_margin,
    )


def _refuse(logits: torch.Tensor, target: torch.Tensor, form: TargetForm) -> None:
    """Say which labels are wrong."""
    for block in blocks_of(logits, voxels_per_block(logits, form.num_classes)):
        read_target(target, block, form)


def _side_by_side(tensor: torch.Tensor | None) -> bool:
    """Whether neighbours in space are neighbours in memory."""
    if tensor is None or tensor.ndim == 0:
        return True
    return tensor.ndim == 3 and (tensor.shape[2] == 1 or tensor.stride(2) == 1)


def _run(
    logits: torch.Tensor | None,
    target: torch.Tensor,
    form: TargetForm,
    terms: ClassTerms | None,
    *,
    classes: int,
    base_e: bool = False,
    loss_map: torch.Tensor | None = None,
    gradient: torch.Tensor | None = None,
    scale: torch.Tensor | None = None,
    overlap: OverlapForm | None = None,
    slopes: torch.Tensor | None = None,
    holds_margin: bool = False,
) -> _Partial:
    """Fill what is given and return the partial results; without logits, labels are counted and nothing else."""
    cases, voxels = target.shape[0], target.shape[2]
    tile = min(_MOST_VOXELS, max(64, _TILE_FLOATS // classes // _LANES * _LANES))
    tiles = -(-voxels // tile)
    tiles_per_chunk = -(-tiles // max(1, _CHUNKS // cases))
    chunks = -(-tiles // tiles_per_chunk)
    threads = max(1, min(torch.get_num_threads(), cases * chunks // _CHUNKS_AT_ONCE))
    cpu = torch.device("cpu")
    partial = _Partial(
        torch.zeros(cases, chunks, dtype=torch.float64, device=cpu),
        torch.zeros(cases, chunks, dtype=torch.int64, device=cpu),
        torch.zeros(cases, chunks, dtype=torch.int64, device=cpu),
        torch.zeros(cases, chunks, 3, classes, dtype=torch.float64, device=cpu),
    )
    rows = torch.empty(threads, 3, classes, tile, device=cpu)
    per_voxel = scale is not None and scale.ndim > 0
    annotated = None if form.class_mask is None else form.class_mask.contiguous()
    loss_map, voxel_scale = (
        None if one is None else one.contiguous() for one in (loss_map, scale if per_voxel else None)
    )
    held: dict[str, torch.Tensor | None] = {
        "logits": logits,
        "target": target,
        "gradient": gradient,
        "loss_map": loss_map,
        "voxel_scale": voxel_scale,
        "slopes": slopes,
        "annotated": annotated,
        "rows": rows,
        **partial._asdict(),
    }
    if terms is not None:
        names = ("margin_negative", "margin_positive", "weight_negative", "weight_positive")
        held.update((name, term.contiguous()) for name, term in zip(names, terms, strict=True))
    problem = _Problem(
        **{name: None if one is None else one.data_ptr() for name, one in held.items()},
        voxels=voxels,
        channels=classes if logits is None else logits.shape[1],
        classes=classes,
        chunks=chunks,
        tiles_per_chunk=tiles_per_chunk,
        tile=tile,
        target_case=target.stride(0),
        has_ignore=form.ignore_index is not None,
        ignore=form.ignore_index or 0,
        label_kind=_LABEL_KINDS[target.dtype],
        margin=terms is not None,
        want_gradient=(gradient is not None and slopes is None) or (slopes is not None and terms is not None),
        want_sums=overlap is not None and slopes is None,
        want_slopes=slopes is not None,
        holds_margin=holds_margin,
        squared=overlap is not None and overlap.squared,
        unit=1.0 if base_e else 0.6931471805599453,
        scale=1.0 if scale is None or per_voxel else float(scale),
    )
    for name, tensor in (("logits", logits), ("gradient", gradient)):
        if tensor is not None:
            setattr(problem, f"{name}_case", tensor.stride(0))
            setattr(problem, f"{name}_channel", tensor.stride(1))
    _share_out(problem, cases * chunks, threads)
    return partial


def _share_out(problem: _Problem, chunks: int, threads: int) -> None:
    """Run all chunks, a few at a time, by whichever thread is free."""
    library: Any = compiled_library()
    step = _CHUNKS_AT_ONCE if threads > 1 else chunks
    starts = iter(range(0, chunks, step))

    def work(worker: int) -> None:
        for start in starts:
            library.margincal_chunks(
                ctypes.byref(problem), _LONG(start), _LONG(min(start + step, chunks)), _LONG(worker)
            )

    others = [threading.Thread(target=work, args=(worker,)) for worker in range(1, threads)]
    for thread in others:
        thread.start()
    work(0)
    for thread in others:
        thread.join()
