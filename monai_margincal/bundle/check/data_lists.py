"""The data lists that a bundle would train on: pairs, grids and label values, checked before anything is trained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from monai.bundle import ConfigParser

from ...datasets import find_shared_groups
from ...errors import root_message
from ...findings import Finding
from ...geometry import GRID_TOLERANCE
from ...statistics import find_problems, scan_labels
from .configs import value_at

#: where MONAI's workflows keep them: training, validation, inference
DATA_LISTS = ("train::dataset::data", "validate::dataset::data", "dataset::data")


def check_data(parser: ConfigParser, file: str) -> list[Finding]:
    """Resolve the data lists of a configuration, read every label and compare its grid with its image's.

    Args:
        parser: the configuration, with ``dataset_dir`` set. Labels must lie in 0 ... ``num_classes`` - 1, where the
            configuration has that key, or be its ``void_label``; grids may differ by its ``grid_tolerance``, by default as in
            training.
        file: the configuration's file, for the findings.

    Returns:
        the findings: no list, an empty one, a missing image, a case in two lists, a group (such as a patient) in two lists, as
        far as the items or the names of the cases tell it, and what `monai_margincal.statistics.find_problems` reports.
    """
    found: list[Finding] = []
    lists: dict[str, list[Any]] = {}
    for id in DATA_LISTS:
        if id not in parser:
            continue
        try:
            data = parser.get_parsed_content(id)
        except Exception as error:  # any part of the configuration can fail here, each with its own type
            found.append(Finding.in_file("error", file, f"{id}: {root_message(error)}", "a data list"))
            continue
        if data:
            lists[id] = list(data)
        else:
            found.append(Finding.in_file("error", file, f"an empty list at {id}", "at least one case"))
    return [*found, *_images(lists.values()), *_shared_groups(lists), *_labels(parser, lists.values())]


def _images(lists: Iterable[Sequence[Any]]) -> Iterable[Finding]:
    """Images that are missing, or in two lists."""
    images = [{str(item["image"]) for item in data if isinstance(item, Mapping) and "image" in item} for data in lists]
    for image in sorted(set().union(*images)):
        if not Path(image).exists():
            yield Finding.in_file("error", image, "no such file or folder", "an image of the data list")
    shared = sorted(set.intersection(*images)) if len(images) == 2 else []
    if shared:
        yield Finding.in_file(
            "error", shared[0], f"{len(shared)} image(s) in training and in validation", "each in one"
        )


def _shared_groups(lists: Mapping[str, Sequence[Any]]) -> Iterable[Finding]:
    """Groups in two lists; items that name neither a case nor a file tell nothing."""
    return find_shared_groups(
        {
            id.replace("::", "#"): [
                item for item in data if isinstance(item, Mapping) and {"case", "image"} & set(item)
            ]
            for id, data in lists.items()
        }
    )


def _labels(parser: ConfigParser, lists: Iterable[Sequence[Any]]) -> Sequence[Finding]:
    """What is wrong with the labels of all lists; each label is read once."""
    items = {
        str(item["label"]): item for data in lists for item in data if isinstance(item, Mapping) and "label" in item
    }
    if not items:
        return ()
    num_classes = value_at(parser, "num_classes")
    scan = scan_labels(
        list(items.values()),
        num_classes=num_classes,
        ignore_index=value_at(parser, "void_label"),
        progress=False,
        on_error="report",
    )
    # None is a value here: compare shapes only
    tolerance = value_at(parser, "grid_tolerance") if "grid_tolerance" in parser else GRID_TOLERANCE
    return find_problems(scan, grid_tolerance=tolerance)
