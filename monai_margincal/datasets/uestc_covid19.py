"""UESTC-COVID-19: chest CTs with pneumonia lesions, with the splits of the margin calibration paper."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from .folder import folder_datalist

#: part -> section -> case numbers. Part 1 has labels by non-experts, part 2 by experts; their numbers overlap.
UESTC_COVID19_SPLITS: dict[int, dict[str, range]] = {
    1: {"training": range(1, 41), "validation": range(41, 56), "test": range(56, 71)},
    2: {"training": range(1, 31), "validation": range(31, 41), "test": range(41, 51)},
}


def uestc_covid19_datalist(
    root: str | os.PathLike[str], part: Literal[1, 2], section: Literal["training", "validation", "test"]
) -> list[dict[str, str]]:
    """List one section of UESTC-COVID-19 with the paper's split by case number.

    The data are handed out by their owners on request and lie in ``root/part1/image/case_1.nii.gz`` with
    ``root/part1/label/case_1.nii.gz`` (70 cases) and likewise ``root/part2`` (50 cases). Volumes come cropped to the lungs.

    Args:
        root: folder that holds ``part1`` and ``part2``.
        part: 1 (labels by non-experts) or 2 (labels by experts).
        section: "training" (cases 1-40 of part 1, 1-30 of part 2), "validation" (41-55, 31-40) or "test" (56-70, 41-50).

    Returns:
        one ``{"image": path, "label": path, "case": "part1_case_1"}`` per case, ordered by case number.

    Raises:
        ValueError: ``part`` or ``section`` is none of the above.
        FileNotFoundError: a folder or a case of the section is missing.

    Source: the splits of the code released with Li, Yu, Zhang, "Distribution-aware Margin Calibration for Medical Image
    Segmentation" (arXiv:2011.01462).

    Example:
        >>> from monai_margincal.datasets import UESTC_COVID19_SPLITS
        >>> {section: len(numbers) for section, numbers in UESTC_COVID19_SPLITS[1].items()}
        {'training': 40, 'validation': 15, 'test': 15}
    """
    if part not in UESTC_COVID19_SPLITS:
        raise ValueError(f"part must be one of {sorted(UESTC_COVID19_SPLITS)}, found {part!r}")
    sections = UESTC_COVID19_SPLITS[part]
    if section not in sections:
        raise ValueError(f"section must be one of {list(sections)}, found {section!r}")
    data = folder_datalist(
        Path(root) / f"part{part}",
        image="image/{case}.nii.gz",
        label="label/{case}.nii.gz",
        cases=[f"case_{number}" for number in sections[section]],
    )
    return [{**item, "case": f"part{part}_{item['case']}"} for item in data]
