"""The cases of a training and of its validation, from a folder or from a data list."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ..datasets import (
    assign_folds,
    assign_groups,
    folder_datalist,
    read_datalist,
    require_separate_groups,
    select_fold,
    split_datalist,
    warn_of_shared_groups,
)

#: the word that stands for every case of the folder
ALL = "all"
#: the share of the cases that is validated on where nobody says otherwise
SHARE = 0.2

_Part = float | Sequence[str | int] | str | None


def training_data(
    dataset_dir: str | os.PathLike[str],
    image: str = "images/{case}.*",
    label: str = "labels/{case}.*",
    datalist_file: str | os.PathLike[str] | None = None,
    training: _Part = None,
    validation: _Part = SHARE,
    seed: int = 0,
    groups: str | os.PathLike[str] | Mapping[str, str | int] | None = None,
    group_column: str | None = None,
    group_pattern: str | None = None,
    folds: int | None = None,
    fold: int | None = None,
) -> dict[str, list[dict[str, Any]]]:
    """List the cases to train on and the cases to validate on.

    Each part is given by case names, by a share of all cases, by None (the cases that the other part leaves), or by ``"all"``.
    The parts share no case, except where ``"all"`` asks for it: to evaluate on a whole folder, or to see whether a network can
    learn a few cases by heart. A case that is itself named ``all`` is chosen by ``["all"]``.

    Cases that belong together, such as the scans of a patient, stay on one side where `groups` or `group_pattern` says which
    they are. Where nobody says it and the names of the cases suggest a group on both sides, a warning names it.

    Args:
        dataset_dir: folder of images and labels; ignored if `datalist_file` is given.
        image: where the images lie in it, see `monai_margincal.datasets.folder_datalist`.
        label: where the labels lie.
        datalist_file: a MONAI data list with the sections ``training`` and ``validation``, instead of all of these but the
            groups; or, with `fold`, with a section ``training`` whose cases have a ``"fold"``.
        training: the cases to train on.
        validation: the cases to validate on.
        seed: draws the cases of a share, and the folds.
        groups: a CSV file, or case name -> group, see `monai_margincal.datasets.assign_groups`.
        group_column: the column of the groups in that file.
        group_pattern: instead, what case names look like: ``"{group}_*"``.
        folds: number of folds for cross-validation; `fold` is validated on, the others are trained on.
        fold: from 0 to ``folds`` - 1.

    Returns:
        ``{"training": [...], "validation": [...]}``, MONAI data lists; with a ``"group"`` where groups are given, and with a
        ``"fold"`` where folds are.

    Raises:
        FileNotFoundError: the folder, a file or a case does not exist.
        ValueError: images and labels do not pair up; no case is left for a part; a case is named in both parts, or a group is in
            both; a case has no group; there is no such fold; cases are named beside folds.
        TypeError: a part is none of the above, or a fold is no whole number.

    Example:
        >>> from monai_margincal.samples import sample_dir
        >>> data = training_data(sample_dir("lung_ct"), validation="lung1")
        >>> [item["case"] for item in data["training"]]
        ['lung2']
        >>> data = training_data(sample_dir("lung_ct"), training="all", validation="all")
        >>> len(data["training"]), len(data["validation"])
        (2, 2)
        >>> data = training_data(sample_dir("lung_ct"), group_pattern="{group}", folds=2, fold=0)
        >>> [(item["group"], item["fold"]) for item in data["validation"]]
        [('lung2', 0)]
    """
    grouped = partial(assign_groups, groups=groups, group_column=group_column, group_pattern=group_pattern)
    _check_folds(folds, fold, {"training": training, "validation": validation}, datalist_file)
    if datalist_file is not None:
        listed = read_datalist(datalist_file, ["training"] if fold is not None else ["training", "validation"])
        listed = {name: grouped(items) for name, items in listed.items()}
        if fold is not None:
            listed = select_fold(listed["training"], fold, str(datalist_file))
        require_separate_groups(listed, str(datalist_file))
        warn_of_shared_groups(listed)
        return listed
    data = grouped(folder_datalist(dataset_dir, image, label))
    parts = {"training": training, "validation": validation}
    whole = [name for name, part in parts.items() if isinstance(part, str) and part == ALL]
    if folds is not None and fold is not None:
        split = select_fold(assign_folds(data, folds, seed), fold, "fold")
    else:
        for name, part in parts.items():
            if part is None and whole:
                raise ValueError(
                    f"no case is left for part {name!r}: {whole[0]!r} takes all {len(data)} cases, "
                    f"expected names, a share or {ALL!r} for both"
                )
        split = split_datalist(data, {name: part for name, part in parts.items() if name not in whole}, seed)
    if not whole:
        warn_of_shared_groups(split)
    return {name: list(data) if name in whole else split[name] for name in parts}


def _check_folds(
    folds: int | None, fold: int | None, parts: Mapping[str, _Part], datalist_file: str | os.PathLike[str] | None
) -> None:
    """Refuse folds that are said by half, or twice."""
    if datalist_file is not None and folds is not None:
        raise ValueError(
            f"folds: found {folds} beside the data list {datalist_file}, expected `fold` alone: the list says in which fold a "
            "case is"
        )
    if datalist_file is None and folds is not None and fold is None:
        raise ValueError(
            f"fold: found None beside {folds} folds, expected the fold to validate on, from 0 to folds - 1"
        )
    if datalist_file is None and folds is None and fold is not None:
        raise ValueError(
            f"folds: found None beside fold {fold}, expected the number of folds, or a data list with folds"
        )
    if folds is not None:
        for name, default in (("training", None), ("validation", SHARE)):
            if parts[name] not in (default, None, ALL) or (name == "validation" and parts[name] == ALL):
                raise ValueError(
                    f"fold: found {fold} beside the {name} cases {parts[name]!r}, expected one of the two: the fold is validated "
                    "on, the other folds are trained on"
                )
