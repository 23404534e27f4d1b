"""The voxels per class of a data set: the numbers everything else starts from."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

from ..counting.class_counts import ClassCounts
from .scan import scan_labels


def count_labels(
    data: Any,
    key: str = "label",
    num_classes: int | None = None,
    ids: Sequence[int] | None = None,
    ignore_index: int | None = None,
    transform: Any = None,
    num_workers: int = 0,
    cache_dir: str | os.PathLike[str] | None = None,
    progress: bool = True,
    on_error: str = "raise",
    seed: int = 0,
    names: Sequence[str] | None = None,
) -> ClassCounts:
    """Count the label voxels of every class over a whole data set, exactly.

    Label files are read in their native integer type and never through float or int16. Supported are NIfTI-1/2 (single files
    and pairs, either byte order), NRRD, MetaImage, PNG, DICOM series and DICOM segmentations. Anything that is not a plain
    label of the declared classes stops the count with a message that names the file, what was found and what was expected.

    ``source`` of the result says what was counted: ``"raw label files"`` or the transforms that came first, such as
    ``"after LoadImaged -> Spacingd"``. Voxels are counted as often as they come out: three crops of a volume are three labels.

    In an initialised torch.distributed group every process must call this alike: each takes a share of the cases, the counts
    are exchanged (never labels), and all return the same total. A DataLoader is shared if its sampler shares it.

    Args:
        data: what to count, one of: a MONAI data list (dictionaries with a path or an array under ``key``); a Dataset, counted
            with its own transforms; a DataLoader, counted batch by batch with its own workers; label files as paths or as a
            pattern such as ``"labels/*.nii.gz"``; the folder of one DICOM series. Arrays are channel-first: see `CountLabels`.
        key: key of the label in dictionary items.
        num_classes: number of classes including background, for the ids 0 ... num_classes - 1.
        ids: the label values that are classes, if they have gaps. With neither, the ids are those that occur.
        ignore_index: label value that is counted as ignored and belongs to no class.
        transform: a MONAI transform (``Compose``) that is applied first. Random ones draw from ``seed`` and the item's place.
        num_workers: worker processes; the counts do not depend on it. Files alone need no ``__main__`` guard; with a Dataset
            or ``transform`` the workers are spawned and do.
        cache_dir: folder where the count of every case is kept as soon as it is known. A later call does not count it again
            while the file (path, size, time and content), the ids and the transforms are the same; a run that was killed
            resumes where it stopped. None: nothing is kept.
        progress: show a progress bar with rate and remaining time; none is shown when standard error is not a terminal.
        on_error: ``"raise"`` stops at the first faulty case. ``"report"`` leaves faulty cases out of the count and lists
            them in one warning; `scan_labels` gives them as ``failures``.
        seed: seed of random transforms.
        names: what the classes are called, in the order of their ids.

    Returns:
        `ClassCounts` with the counts of every case in ``cases``. A case is named after its label file without the ending,
        with as many parent folders as it takes to tell two apart.

    Raises:
        FileNotFoundError: a file does not exist or a pattern matches none.
        ValueError: no data; a file is damaged, truncated, no label, or holds a value outside the ids; an argument is invalid.
        TypeError: ``data`` is none of the above.
        RuntimeError: workers could not be started.

    Example:
        >>> from importlib.resources import files
        >>> labels = files("monai_margincal") / "samples" / "lung_ct" / "labels"
        >>> counts = count_labels(f"{labels}/*.nii.gz", num_classes=2)
        >>> counts.counts.tolist(), counts.cases
        ([1743991, 25481], {'lung1': (883899, 837), 'lung2': (860092, 24644)})
    """
    scan = scan_labels(
        data,
        key,
        num_classes=num_classes,
        ids=ids,
        ignore_index=ignore_index,
        transform=transform,
        num_workers=num_workers,
        cache_dir=cache_dir,
        progress=progress,
        on_error=on_error,
        seed=seed,
    )
    if scan.failures:
        listed = "\n".join(f"  {failure.message}" for failure in scan.failures)
        warnings.warn(
            f"{len(scan.failures)} case(s) could not be counted and are not in the result ({len(scan.cases)} are):\n{listed}",
            stacklevel=2,
        )
    return scan.counts if names is None else scan.counts.named(names)
