"""Class-index labels: how tensors of them are read, and what to say of labels that are not classes, in tensors and arrays alike.

Arrays and files are read by `monai_margincal.counting`, which works without torch, so this module does not import it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

__all__ = ["class_labels", "expected_classes", "not_integers", "undeclared_labels"]

_MAX_FOUND = 8
_MAX_EXPECTED = 16


def class_labels(
    target: torch.Tensor,
    num_classes: int,
    ignore_index: int | None = None,
    *,
    classes_in_messages: str = "",
    check: bool = True,
    where: str = "target",
    advice: str = "",
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Class indices as int64, checked, with the voxels that count.

    Args:
        target: class indices of any shape and any real dtype.
        num_classes: C; allowed are 0 ... C - 1.
        ignore_index: label of the ignored voxels, or None.
        classes_in_messages: what the classes are called, for messages.
        check: False for a target that has been checked before; then nothing waits for the device, and any undeclared label
            that remains is brought into the range of the classes.
        where: what messages call the target, for example its file.
        advice: a sentence that messages end with.

    Returns:
        the labels (0 in ignored voxels), and which voxels are valid (None: all of them).

    Raises:
        ValueError: a label is neither allowed nor ignored, or is not a whole number.

    Example:
        >>> import torch
        >>> class_labels(torch.tensor([0.0, 1.0, 255.0]), 2, ignore_index=255)
        (tensor([0, 1, 0]), tensor([ True,  True, False]))
        >>> class_labels(torch.tensor([0, 2, 7]), 2)
        Traceback (most recent call last):
        ValueError: target: found the label value(s) 2, 7, expected class ids [0, 1].
    """
    labels = target.long()
    # compared after the conversion: 255 is 255 in uint8 and in float32, and -1 never equals 255
    valid = None if ignore_index is None else labels != ignore_index
    if not check:
        labels = labels if valid is None else labels.masked_fill(~valid, 0)
        return labels.clamp(0, num_classes - 1), valid
    if labels.numel() == 0:
        return labels, valid
    if target.is_floating_point():
        broken = labels.to(target.dtype) != target
        if bool(broken.any()):
            expected = expected_classes(range(num_classes), ignore_index, classes_in_messages)
            values = target[broken].double().unique().tolist()
            raise ValueError(_advised(not_integers(where, values, expected), advice))
    if valid is not None:
        labels = labels.masked_fill(~valid, 0)
    low, high = labels.aminmax()
    if int(low) < 0 or int(high) >= num_classes:
        # ignored voxels are 0, a class
        found = [value for value in labels.unique().tolist() if not 0 <= value < num_classes]
        if not advice and found == [255] and ignore_index is None:
            advice = "A mask of 0 and 255 has to be divided by 255 first; ignore_index=255 leaves such voxels out."
        expected = expected_classes(range(num_classes), ignore_index, classes_in_messages)
        raise ValueError(_advised(undeclared_labels(where, found, expected), advice))
    return labels, valid


def expected_classes(ids: Sequence[int], ignore_index: int | None = None, classes_in_messages: str = "") -> str:
    """What messages say about which labels are allowed.

    Example:
        >>> expected_classes(range(2), ignore_index=255, classes_in_messages="0 background, 1 lesion")
        'class ids [0, 1] (0 background, 1 lesion) or the ignored value 255'
    """
    text = f"class ids [{_shortened(ids)}]" + (f" ({classes_in_messages})" if classes_in_messages else "")
    return text if ignore_index is None else f"{text} or the ignored value {ignore_index}"


def undeclared_labels(
    where: str, found: Iterable[int] | Mapping[int, int], expected: str, beside: Sequence[int] = ()
) -> str:
    """What to say about labels that are not classes.

    Args:
        where: what to call the label, for example its file.
        found: the labels, or the number of voxels of each.
        expected: from `expected_classes`.
        beside: the values that are classes, where they are known.

    Example:
        >>> undeclared_labels("b.png", {255: 30}, expected_classes([0, 1]), beside=[0])
        'b.png: found the label value(s) 255 (30 voxels) besides 0, expected class ids [0, 1].'
    """
    values = list(found)
    counts = [f" ({_voxels(found[value])})" if isinstance(found, Mapping) else "" for value in values]
    shown = ", ".join(f"{value}{count}" for value, count in list(zip(values, counts, strict=True))[:_MAX_FOUND])
    if len(values) > _MAX_FOUND:
        shown += f", ... ({len(values)} values in all)"
    return f"{where}: found the label value(s) {shown}{f' besides {_shortened(beside)}' if beside else ''}, expected {expected}."


def not_integers(where: str, values: Sequence[float], expected: str) -> str:
    """What to say about labels that are not whole numbers, including NaN and infinities.

    Args:
        where: what to call the label.
        values: the distinct values that are wrong.
        expected: from `expected_classes`, or other words.

    Example:
        >>> not_integers("c.nii.gz", [0.25, 0.5], "class ids [0, 1]")
        'c.nii.gz: found values that are not integers: 0.25, 0.5, expected class ids [0, 1]'
    """
    shown = ", ".join(f"{value:.6g}" for value in values[:_MAX_FOUND])
    if len(values) > _MAX_FOUND:
        shown += f", ... ({len(values)} different values)"
    return f"{where}: found values that are not integers: {shown}, expected {expected}"


def _shortened(values: Sequence[int]) -> str:
    shown = ", ".join(str(value) for value in values[:_MAX_EXPECTED])
    return shown + (f", ..., {values[-1]}" if len(values) > _MAX_EXPECTED else "")


def _voxels(count: int) -> str:
    return f"{count} voxel" + ("" if count == 1 else "s")


def _advised(message: str, advice: str) -> str:
    return f"{message.removesuffix('.')}. {advice}" if advice else message
