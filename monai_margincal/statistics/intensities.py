"""Cases whose image suggests that a class was drawn under another's index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path

import numpy as np

from ..findings import Finding
from ..formats import describe_label
from .scan import LabelScan

#: with fewer cases there is no telling which are the rule
_FEWEST_CASES = 5
#: share of the other cases in which one class must be brighter than the other to be called the rule ...
_RULE = 0.9
#: ... and by how many standard deviations in their median
_CLEARLY_BRIGHTER = 0.5
#: a case contradicts the rule where its difference has the opposite sign and at least this share of the rule's size
_TURNED = 0.5


def class_intensities(image: np.ndarray, label: np.ndarray, ids: Iterable[int]) -> dict[int, tuple[float, float]]:
    """Mean and standard deviation of an image within each class that occurs.

    Args:
        image: intensities, finite in every class.
        label: class ids, of the image's shape.
        ids: the ids to look at; other voxels are left out.

    Raises:
        ValueError: the shapes differ.

    Example:
        >>> class_intensities(np.array([[-1000.0, -1000, 30, 50]]), np.array([[0, 0, 1, 1]]), [0, 1, 2])
        {0: (-1000.0, 0.0), 1: (40.0, 10.0)}
    """
    if image.shape != label.shape:
        raise ValueError(f"the image has the shape {image.shape}, its label {label.shape}, expected one shape")
    known = np.array(sorted(ids))
    number, total, squares = (np.zeros(len(known)) for _ in range(3))
    image, label = (np.atleast_1d(array).reshape(-1, array.shape[-1] if array.ndim else 1) for array in (image, label))
    rows = max(1, (1 << 20) // image.shape[1])  # as float64 a whole scan would take eight times its memory
    for start in range(0, len(image), rows):
        intensity = image[start : start + rows].ravel().astype(np.float64)
        own = label[start : start + rows].ravel()
        place = np.searchsorted(known, own).clip(max=len(known) - 1)
        is_known = (known[place] == own) & np.isfinite(intensity)
        place, intensity = place[is_known], intensity[is_known]
        number += np.bincount(place, minlength=len(known))
        total += np.bincount(place, intensity, len(known))
        squares += np.bincount(place, intensity**2, len(known))
    found = {}
    for class_id, n, sum_, square in zip(known.tolist(), number, total, squares, strict=True):
        if n:
            found[class_id] = (float(sum_ / n), float(np.sqrt(max(0.0, square / n - (sum_ / n) ** 2))))
    return found


def find_contradicting_intensities(scan: LabelScan) -> tuple[Finding, ...]:
    """Find the cases in which one class is darker than another although it is clearly brighter in the other cases.

    That is what a case looks like when two classes, or a class and the background, were drawn under each other's index: its set
    of label values gives nothing away. For each pair of classes the difference of their mean intensities is taken in units of
    their spread, which no scale or offset of a scanner changes. Where at least nine in ten of the other cases agree on its sign,
    with a median of at least half a standard deviation, a case with the opposite sign and at least half that size is reported.

    Reads every image and label again, unlike `monai_margincal.statistics.find_problems`. Images that do not fit their label or
    cannot be read are left to that.

    Args:
        scan: the raw labels of a data list with images, from `scan_labels`; cases without an image are left out.

    Returns:
        findings of the kind ``"contradicting intensities"``, at most one per case, sorted by file; none for fewer than 5 cases.

    Example:
        >>> import tempfile
        >>> import nibabel
        >>> from monai_margincal.statistics import scan_labels
        >>> folder, data = Path(tempfile.mkdtemp()), []
        >>> for case in range(6):
        ...     image = np.random.default_rng(case).normal(0, 10, (8, 8, 4))
        ...     image[:4] += 100
        ...     label = np.zeros(image.shape, np.uint8)
        ...     label[4:] = 1  # dark ...
        ...     if case == 3:
        ...         label = 1 - label  # ... but here
        ...     item = {"image": str(folder / f"image{case}.nii"), "label": str(folder / f"label{case}.nii")}
        ...     for key, array in (("image", image.astype(np.float32)), ("label", label)):
        ...         nibabel.save(nibabel.Nifti1Image(array, np.eye(4)), item[key])
        ...     data.append(item)
        >>> for finding in find_contradicting_intensities(scan_labels(data, num_classes=2)):
        ...     print(finding.message, [Path(file).name for file in finding.files])
        class 0 is darker than class 1, the other cases say brighter: was one drawn as the other? ['image3.nii', 'label3.nii']
    """
    names = dict(zip(scan.counts.ids, scan.counts.labels, strict=True))
    cases: dict[tuple[str, str], Mapping[int, tuple[float, float]]] = {}
    for record in scan.cases:
        image = scan.images.get(record.file or "")
        if image is None or record.file is None:
            continue
        try:
            intensities = class_intensities(
                describe_label(Path(image)).load(), describe_label(Path(record.file)).load(), scan.counts.ids
            )
        except (ValueError, OSError):
            continue
        annotated = scan.counts.ids if record.annotated is None else record.annotated
        cases[image, record.file] = {k: value for k, value in intensities.items() if k in annotated}
    contradictions: dict[tuple[str, str], list[str]] = {}
    for first, second in combinations(scan.counts.ids, 2):
        apart = {
            files: _difference(classes[first], classes[second])
            for files, classes in cases.items()
            if first in classes and second in classes
        }
        for files, difference in apart.items():
            others = np.array([value for name, value in apart.items() if name != files])
            if len(apart) < _FEWEST_CASES:
                continue
            rule = float(np.median(others))
            agree = float((np.sign(others) == np.sign(rule)).mean())
            if agree >= _RULE and abs(rule) >= _CLEARLY_BRIGHTER and difference * np.sign(rule) <= -_TURNED * abs(rule):
                here, there = ("darker", "brighter") if rule > 0 else ("brighter", "darker")
                contradictions.setdefault(files, []).append(
                    f"class {names[first]} is {here} than class {names[second]}, the other cases say {there}"
                )
    return tuple(
        Finding("warning", "contradicting intensities", "; ".join(messages) + ": was one drawn as the other?", files)
        for files, messages in sorted(contradictions.items())
    )


def _difference(first: tuple[float, float], second: tuple[float, float]) -> float:
    """First mean minus second, in units of the spread within the two."""
    spread = float(np.sqrt((first[1] ** 2 + second[1] ** 2) / 2))
    step = first[0] - second[0]
    return step / spread if spread > 0 else float(np.sign(step)) * 1e6
