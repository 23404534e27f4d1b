"""The data lists that a bundle would train on: pairs, grids and label values, before anything is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...errors import root_message
from ...geometry import GRID_TOLERANCE
from .finding import Finding

#: where MONAI's workflows have them: training, validation, inference
DATA_LISTS = ("train::dataset::data", "validate::dataset::data", "dataset::data")


def check_data(parser: Any, file: str, num_classes: int | None) -> list[Finding]:
    """Resolve the data lists of a training configuration, read every label and compare its grid with its image's.

    Args:
        parser: `monai.bundle.ConfigParser` of the configuration, with ``dataset_dir`` set.
        file: the configuration's file, for the findings.
        num_classes: the labels must lie in 0 ... num_classes - 1; None: any integral value.

    Returns:
        the findings: no list, an empty one, an image that is not there, a case in two lists, and what
        `monai_margincal.statistics.find_problems` says.
    """
    from ...statistics import find_problems, scan_labels

    found: list[Finding] = []
    lists: dict[str, list[dict[str, Any]]] = {}
    for id in DATA_LISTS:
        if id not in parser:
            continue
        try:
            data = parser.get_parsed_content(id)
        except Exception as error:  # any part of the configuration can fail here, each with its own type
            found.append(Finding("error", file, f"{id}: {root_message(error)}", "a data list"))
            continue
        if not data:
            found.append(Finding("error", file, f"an empty list at {id}", "at least one case"))
            continue
        lists[id] = list(data)
    images = {
        id: {str(item["image"]) for item in data if isinstance(item, dict) and "image" in item}
        for id, data in lists.items()
    }
    for image in sorted(set().union(*images.values())):
        if not Path(image).exists():
            found.append(Finding("error", image, "no such file or folder", "an image of the data list"))
    if len(images) == 2:
        shared = sorted(set.intersection(*images.values()))
        if shared:
            found.append(
                Finding("error", shared[0], f"{len(shared)} image(s) in training and in validation", "each in one")
            )
    items = {
        str(item["label"]): item
        for data in lists.values()
        for item in data
        if isinstance(item, dict) and "label" in item
    }
    if not items:
        return found
    scan = scan_labels(list(items.values()), num_classes=num_classes, progress=False, on_error="report")
    severities = {"error": "error", "warning": "warning", "info": "note"}
    tolerance = parser.get_parsed_content("grid_tolerance") if "grid_tolerance" in parser else GRID_TOLERANCE
    for problem in find_problems(scan, grid_tolerance=tolerance):
        severity = severities[problem.severity]
        # an image that lies elsewhere than its label is trained on as if it did not
        if problem.kind == "geometry mismatch":
            severity = "error"
        first = problem.files[0] if problem.files else file
        more = f" (and {len(problem.files) - 1} more)" if len(problem.files) > 1 else ""
        found.append(
            Finding(
                severity, first, f"{problem.kind}{more}: {problem.message}", "a label that fits its image and classes"
            )
        )
    return found
