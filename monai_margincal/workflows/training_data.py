"""The cases of a training and of its validation, from a folder or from a data list."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ..datasets import folder_datalist, read_datalist, split_datalist

#: the word that stands for every case of the folder
ALL = "all"

_Part = float | Sequence[str | int] | str | None


def training_data(
    dataset_dir: str | os.PathLike[str],
    image: str = "images/{case}.*",
    label: str = "labels/{case}.*",
    datalist_file: str | os.PathLike[str] | None = None,
    training: _Part = None,
    validation: _Part = 0.2,
    seed: int = 0,
) -> dict[str, list[dict[str, Any]]]:
    """List the cases to train on and the cases to validate on.

    Each part is given by case names, by a share of all cases, by None (the cases that the other part leaves), or by ``"all"``.
    The parts share no case, except where ``"all"`` asks for it: to evaluate on a whole folder, or to see whether a network can
    learn a few cases by heart. A case that is itself named ``all`` is chosen by ``["all"]``.

    Args:
        dataset_dir: folder of images and labels; ignored if `datalist_file` is given.
        image: where the images lie in it, see `monai_margincal.datasets.folder_datalist`.
        label: where the labels lie.
        datalist_file: a MONAI data list with the sections ``training`` and ``validation``, instead of all other arguments.
        training: the cases to train on.
        validation: the cases to validate on.
        seed: draws the cases of a share.

    Returns:
        ``{"training": [...], "validation": [...]}``, MONAI data lists.

    Raises:
        FileNotFoundError: the folder, a file or a case does not exist.
        ValueError: images and labels do not pair up; no case is left for a part; a case is named in both parts.
        TypeError: a part is none of the above.

    Example:
        >>> from monai_margincal.samples import sample_dir
        >>> data = training_data(sample_dir("lung_ct"), validation="lung1")
        >>> [item["case"] for item in data["training"]]
        ['lung2']
        >>> data = training_data(sample_dir("lung_ct"), training="all", validation="all")
        >>> len(data["training"]), len(data["validation"])
        (2, 2)
    """
    if datalist_file is not None:
        return read_datalist(datalist_file)
    data = folder_datalist(dataset_dir, image, label)
    parts = {"training": training, "validation": validation}
    whole = [name for name, part in parts.items() if isinstance(part, str) and part == ALL]
    for name, part in parts.items():
        if part is None and whole:
            raise ValueError(
                f"no case is left for part {name!r}: {whole[0]!r} takes all {len(data)} cases, "
                f"expected names, a share or {ALL!r} for both"
            )
    split = split_datalist(data, {name: part for name, part in parts.items() if name not in whole}, seed)
    return {name: list(data) if name in whole else split[name] for name in parts}
