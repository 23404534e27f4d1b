"""Count one label file, on its native integers and never on a converted copy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..errors import naming_files
from ..formats import LabelImage, describe_label
from ..formats.voxel_stream import stream_name, voxel_blocks
from ..geometry import voxel_spacing, voxel_volume_mm3, without_trailing_ones
from ..labels import expected_classes
from .case_names import case_name
from .case_record import CaseRecord
from .one_hot import one_hot_voxel_counts
from .value_counter import ValueCounter
from .voxel_counts import VoxelCounts, select_classes


def count_file(path: Path, ids: Sequence[int] | None = None, ignore_index: int | None = None) -> CaseRecord:
    """Count the voxels per label value of one file, or of the DICOM series in a folder.

    Trailing axes of size 1 are dropped. What remains is 1-D to 3-D class indices, or has one more axis that holds one-hot
    channels, one per id.

    Args:
        path: the file.
        ids: the declared label values; needed for one-hot channels, and checked.
        ignore_index: the value that is ignored.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged, is not a label, or holds values other than those declared; the message names it.

    Example:
        >>> import nibabel, numpy, tempfile
        >>> path = Path(tempfile.mkdtemp()) / "label.nii.gz"
        >>> voxels = numpy.array([[[0, 1], [1, 2]]], dtype=numpy.uint8)
        >>> nibabel.save(nibabel.Nifti1Image(voxels, numpy.diag([-2.0, 2.0, 5.0, 1.0])), path)
        >>> count = count_file(path)
        >>> count.values, count.voxel_volume, count.dtype
        ({0: 1, 1: 2, 2: 1}, 20.0, 'uint8')
    """
    image = describe_label(path)
    where = str(path)
    expected = "integer class ids" if ids is None else expected_classes(ids)
    with naming_files(path, f"cannot be read, expected a label of {expected}", raises=ValueError):
        if _has_channels(image):
            counted = _count_channels(image, ids, ignore_index, where)
            values = dict(zip(counted.ids, counted.counts.tolist(), strict=True))
            if counted.ignored and ignore_index is not None:
                values[ignore_index] = counted.ignored
            reader = image.reader
        else:
            counter = ValueCounter(where, expected)
            if image.body is not None and image.as_stored:
                for block in voxel_blocks(image.body):
                    counter.add(block)
                reader = stream_name(image.body)
            else:
                counter.add(image.load())
                reader = image.reader
            values = counter.counts()
        select_classes(values, ids, ignore_index, where)
    spacing, volume = spacing_and_volume(image.affine)
    return CaseRecord(
        case_name(path),
        values,
        file=where,
        shape=image.shape,
        dtype=image.dtype,
        spacing=spacing,
        voxel_volume=volume,
        affine=None if image.affine is None else image.affine.tolist(),
        reader=f"{image.format}, {reader}",
    )


def _has_channels(image: LabelImage) -> bool:
    shape = without_trailing_ones(image.shape)
    if len(shape) > 4:
        raise ValueError(f"{image.path}: found {len(shape)} axes (shape {image.shape}), expected at most 4")
    return len(shape) == 4 or (image.channel_axis >= 0 and image.shape[image.channel_axis] > 1)


def _count_channels(image: LabelImage, ids: Sequence[int] | None, ignore_index: int | None, where: str) -> VoxelCounts:
    axes = [axis for axis, size in enumerate(image.shape) if size > 1]
    axis = image.channel_axis if image.channel_axis >= 0 else axes[-1]
    channels = image.shape[axis]
    if ids is None or channels != len(ids):
        declared = "no ids are declared" if ids is None else f"{len(ids)} ids are declared"
        raise ValueError(
            f"{where}: found {len(image.shape)} axes (shape {image.shape}), expected 2-D or 3-D class indices, or one-hot "
            f"channels along axis {axis}, one per declared id ({declared})"
        )
    return one_hot_voxel_counts(np.moveaxis(image.load(), axis, 0), ids, ignore_index, where)


def spacing_and_volume(affine: np.ndarray | None) -> tuple[tuple[float, ...] | None, float | None]:
    volume = None if affine is None else voxel_volume_mm3(affine, default=None)
    return (None, None) if affine is None or volume is None else (voxel_spacing(affine), volume)
