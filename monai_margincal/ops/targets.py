"""What a segmentation target may look like, and what is refused.

The rules, shared by every loss of the package:

* a target holds either **class indices**, shape (B, *spatial) or (B, 1, *spatial), of any integer dtype or of a floating dtype
  with whole numbers, or **one value per class**, shape (B, N, *spatial), one-hot or soft: each in [0, 1], adding up to 1 in a
  voxel;
* for one-channel logits a floating target of the logits' shape is soft: the probability of the foreground;
* a label outside 0 ... C - 1 that is not ``ignore_index`` is an error that lists what was found and what was expected, raised
  before anything is indexed with it (`monai_margincal.labels`); overlapping channels are an error and never resolved by argmax;
* a voxel is ignored where its label is ``ignore_index``; with one value per class, where all its channels equal
  ``ignore_index`` or, if ``ignore_index`` is a class id, where that class's channel is 1.
"""

from __future__ import annotations

import torch

from ..labels import class_labels

__all__ = [
    "holds_class_indices",
    "one_hot_target",
    "plain_tensor",
    "soft_labels",
    "stands_in",
    "with_channel",
]

#: how far the sum of one voxel's channels may be from 1: soft labels made in float32 and in half precision
_SUM_TOLERANCE = 1e-3
_HALF_SUM_TOLERANCE = 2e-2


def plain_tensor(value: torch.Tensor) -> torch.Tensor:
    """The tensor without a subclass around it: every operation on a `MetaTensor` would pay for its bookkeeping.

    Subclasses that stand for something other than their own data (fake tensors of a tracer) stay what they are.
    """
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"expected a torch.Tensor, found {type(value).__name__}")
    return value if type(value) is torch.Tensor or stands_in(value) else value.as_subclass(torch.Tensor)


def stands_in(value: torch.Tensor) -> bool:
    """Whether the tensor's class takes over operations on it."""
    return type(value).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__


def holds_class_indices(input: torch.Tensor, target: torch.Tensor, only_indices: bool = False) -> bool:
    """Tell class indices from one value per class by shape, for one channel by dtype.

    Args:
        input: logits (B, N, *spatial).
        target: see the module's rules.
        only_indices: refuse one value per class.

    Raises:
        ValueError: the shapes fit none of the forms.
    """
    if input.ndim < 2 or input.shape[1] < 1:
        raise ValueError(f"input has the shape {tuple(input.shape)}: expected logits (B, N, *spatial) with N >= 1")
    if not input.is_floating_point():
        raise TypeError(f"input has the dtype {input.dtype}: expected floating-point logits")
    if target.is_complex():
        raise TypeError(f"target has the dtype {target.dtype}: expected labels of an integer or floating-point dtype")
    batch, channels, spatial = input.shape[0], input.shape[1], input.shape[2:]
    if target.ndim == input.ndim - 1 and target.shape[0] == batch and target.shape[1:] == spatial:
        return True
    if target.ndim == input.ndim and target.shape[0] == batch and target.shape[2:] == spatial:
        if target.shape[1] == channels and not only_indices:
            return channels == 1 and not target.is_floating_point()
        if target.shape[1] == 1:
            return True
    forms = f"class indices {_shape(batch, 1, spatial)} or {_shape(batch, None, spatial)}"
    if only_indices:
        forms += " (to_onehot_y=True)"
    elif channels > 1:
        forms += f", or one value per class {_shape(batch, channels, spatial)}"
    raise ValueError(
        f"target has the shape {tuple(target.shape)}, input has the shape {tuple(input.shape)}: expected {forms}"
    )


def _shape(batch: int, channels: int | None, spatial: torch.Size) -> str:
    return str((batch, *(() if channels is None else (channels,)), *spatial))


def with_channel(input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The target with a channel dimension, so that its dimensions are those of the input."""
    return target.unsqueeze(1) if target.ndim == input.ndim - 1 else target


def soft_labels(
    target: torch.Tensor, num_classes: int, ignore_index: int | None, dtype: torch.dtype, check: bool = True
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """One value per class, checked, with the voxels that count.

    Args:
        target: (B, C, ...) with C = ``num_classes``, or (B, 1, ...): the probability of class 1 of two.
        num_classes: C.
        ignore_index: see the module's rules, or None.
        dtype: what to compute in.
        check: False for a target that was checked before.

    Returns:
        the labels (B, C, ...) in ``dtype`` (0 in ignored voxels), and which voxels are valid, (B, 1, ...) (None: all of them).

    Raises:
        ValueError: a value is outside [0, 1], or the channels of a voxel do not add up to 1.
    """
    tolerance = _HALF_SUM_TOLERANCE if target.dtype in (torch.float16, torch.bfloat16) else _SUM_TOLERANCE
    labels = target.to(dtype)
    one_channel = labels.shape[1] == 1
    valid = None
    if ignore_index is not None:
        ignored = (labels == ignore_index).all(dim=1, keepdim=True)
        if 0 <= ignore_index < num_classes and not one_channel:
            ignored |= (labels[:, ignore_index : ignore_index + 1] == 1) & _adds_to_one(labels, tolerance)
        valid = ~ignored
        labels = labels.masked_fill(ignored, 0)
    if check and labels.numel() > 0:
        _check_shares(labels, valid, tolerance)
    if one_channel:
        labels = torch.cat([1 - labels, labels], dim=1)
        labels = labels if valid is None else labels.masked_fill(~valid, 0)
    return labels, valid


def one_hot_target(
    input: torch.Tensor, target: torch.Tensor, ignore_index: int | None, only_indices: bool = False, check: bool = True
) -> tuple[torch.Tensor, torch.Tensor]:
    """Read any form of target as one value per class, and tell which voxels count.

    Args:
        input: logits (B, N, *spatial).
        target: class indices or one value per class.
        ignore_index: label of the voxels that do not count, or None.
        only_indices: refuse one value per class.
        check: False for a target that was checked before.

    Returns:
        the target (B, C, *spatial), float32 or float64, 0 in ignored voxels, with C = N, or 2 for N = 1; the valid voxels, bool
        (B, 1, *spatial).

    Raises:
        ValueError: shapes or labels are not as declared.
    """
    num_classes = max(input.shape[1], 2)
    dtype = torch.promote_types(input.dtype, torch.float32)
    holds_indices = holds_class_indices(input, target, only_indices)
    target = with_channel(input, target)
    if holds_indices:
        labels, valid = class_labels(target, num_classes, ignore_index, check=check)
        shape = (labels.shape[0], num_classes, *labels.shape[2:])
        # made from the labels and not in place, for `torch.func.vmap`
        values = labels.new_zeros((), dtype=dtype).expand(shape).scatter(1, labels, 1)
        if valid is not None:
            values.masked_fill_(~valid, 0)
    else:
        values, valid = soft_labels(target, num_classes, ignore_index, dtype, check=check)
    return values, values.new_ones((), dtype=torch.bool).expand(values[:, :1].shape) if valid is None else valid


def _check_shares(labels: torch.Tensor, valid: torch.Tensor | None, tolerance: float) -> None:
    low, high = (float(edge) for edge in torch.aminmax(labels))
    if not (low >= -tolerance and high <= 1 + tolerance):
        raise ValueError(
            f"target holds one value per class between {low:g} and {high:g}: expected one-hot or soft labels in [0, 1]"
        )
    if labels.shape[1] == 1:
        return
    fits = _adds_to_one(labels, tolerance)
    if valid is not None:
        fits |= ~valid
    if not bool(fits.all()):
        sums = labels.sum(dim=1, keepdim=True)[~fits]
        raise ValueError(
            "the channels of target must add up to 1 in every voxel of one-hot or soft labels, found sums from "
            f"{float(sums.min()):g} to {float(sums.max()):g} in {sums.numel()} voxel(s): overlapping or empty channels "
            "(multi-label targets such as the BraTS regions TC, WT, ET) have no single class per voxel; expected mutually "
            "exclusive classes with a background channel, or ignore_index for voxels without a label"
        )


def _adds_to_one(labels: torch.Tensor, tolerance: float) -> torch.Tensor:
    return (labels.sum(dim=1, keepdim=True) - 1).abs() <= tolerance
