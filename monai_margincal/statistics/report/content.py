"""What the report shows, as JSON types: the page draws this and nothing else."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...counting.as_class_counts import as_class_counts
from ...counting.class_counts import ClassCounts
from ...findings import Finding
from ...geometry import axis_codes
from ...margins import class_margins
from ..grid_problems import in_patient_order
from ..problems import find_problems
from ..recipe_snippets import chosen_recipe
from ..scan import LabelScan
from ..size_problems import size_problems


def report_data(
    counts: Any,
    transformed: Any = None,
    findings: Iterable[Finding] | None = None,
    tau: float = 1.0,
    upsilon: float = 1.0,
    normalization: str = "sum",
    curve_taus: Sequence[float] = (0.5, 1.0, 2.0, 5.0),
    title: str = "Class statistics",
) -> dict[str, Any]:
    """Collect everything the report shows.

    Args:
        counts: a `LabelScan` (with geometry and findings) or anything that can be turned into a `ClassCounts`.
        transformed: the same data after the training transforms, in either form; shows the drift of the frequencies.
        findings: what `find_problems` gave; default: what it gives for a scan, and what `size_problems` gives for
            bare counts.
        tau: scale of the margins that are shown and of those in the snippets.
        upsilon: see `monai_margincal.margins.class_margins`.
        normalization: see `monai_margincal.margins.class_margins`.
        curve_taus: the values of tau that get a curve.
        title: heading of the page.

    Example:
        >>> data = report_data(ClassCounts([90, 10], cases={"a": [50, 0], "b": [40, 10]}))
        >>> [(row["label"], row["frequency"], row["cases_with"]) for row in data["classes"]]
        [('0', 0.9, 2), ('1', 0.1, 1)]
    """
    scan = counts if isinstance(counts, LabelScan) else None
    raw = scan.counts if scan is not None else as_class_counts(counts)
    after_scan = transformed if isinstance(transformed, LabelScan) else None
    after = (
        None if transformed is None else (after_scan.counts if after_scan is not None else as_class_counts(transformed))
    )
    if findings is None:
        findings = find_problems(scan, after_scan) if scan is not None else size_problems(raw)
    cases = raw.cases or {}
    annotated = {record.name: record.annotated for record in scan.cases} if scan is not None else {}
    frequencies = [None if math.isnan(value) else value for value in raw.frequencies.tolist()]
    classes = []
    for place, (class_id, label, count) in enumerate(zip(raw.ids, raw.labels, raw.counts.tolist(), strict=True)):
        asked = [name for name in cases if annotated.get(name) is None or class_id in (annotated[name] or ())]
        classes.append(
            {
                "id": class_id,
                "label": label,
                "voxels": count,
                "frequency": frequencies[place],
                "cases_with": sum(cases[name][place] > 0 for name in asked),
                "cases_annotated": len(asked),
            }
        )
    return {
        "format": "monai_margincal.report",
        "version": 1,
        "title": title,
        "source": raw.source,
        "total": raw.total,
        "ignored": raw.ignored,
        "case_count": len(cases),
        "classes": classes,
        "cases": {
            name: {
                "counts": list(values),
                "annotated": None if annotated.get(name) is None else list(annotated[name] or ()),
            }
            for name, values in cases.items()
        },
        "margins": _margins(raw, tau, upsilon, normalization, curve_taus=curve_taus),
        "recipe": _recipe(raw, after, tau=tau, upsilon=upsilon, normalization=normalization),
        "drift": None if after is None else _drift(raw, after),
        "findings": [finding.to_dict() for finding in findings],
        "geometry": None if scan is None else _geometry(scan),
        "files": None if scan is None else [_file(record) for record in scan.cases],
    }


def _margins(
    counts: ClassCounts, tau: float, upsilon: float, normalization: str, curve_taus: Sequence[float]
) -> dict[str, Any]:
    try:
        with warnings.catch_warnings():
            # an absent class is a finding of its own here
            warnings.simplefilter("ignore", UserWarning)
            chosen = class_margins(counts, tau, upsilon, normalization)  # type: ignore[arg-type]
            curves = [
                {"tau": value, "negative": class_margins(counts, value, upsilon, normalization).negative.tolist()}  # type: ignore[arg-type]
                for value in curve_taus
            ]
    except ValueError as error:
        return {"error": str(error)}
    return {
        "error": None,
        "tau": tau,
        "upsilon": upsilon,
        "normalization": normalization,
        "negative": chosen.negative.tolist(),
        "positive": chosen.positive.tolist(),
        "curves": curves,
    }


def _recipe(raw: ClassCounts, after: ClassCounts | None, **margins: Any) -> dict[str, Any]:
    try:
        return {"error": None, **chosen_recipe(raw, after, **margins)}
    except ValueError as error:
        return {"error": str(error)}


def _drift(raw: ClassCounts, after: ClassCounts) -> dict[str, Any]:
    later = dict(zip(after.ids, after.frequencies.tolist(), strict=True))
    ratios: list[float | None] = []
    for class_id, share in zip(raw.ids, raw.frequencies.tolist(), strict=True):
        ratios.append(later.get(class_id, 0.0) / share if share > 0 else None)
    return {"source": after.source, "total": after.total, "ratios": ratios}


def _geometry(scan: LabelScan) -> dict[str, Any]:
    spacings = [in_patient_order(record, record.spacing) for record in scan.cases if record.spacing is not None]
    shapes = [in_patient_order(record, record.shape) for record in scan.cases if record.shape is not None]
    orientations = Counter(
        axis_codes(record.affine)
        for record in scan.cases
        if record.affine is not None and record.voxel_volume is not None
    )
    volumes = [record.voxel_volume for record in scan.cases if record.voxel_volume is not None]
    return {
        "median_spacing": None if not spacings else np.median(np.array(spacings), axis=0).tolist(),
        "median_shape": None if not shapes else np.median(np.array(shapes), axis=0).tolist(),
        "median_voxel_volume": None if not volumes else float(np.median(volumes)),
        "cases_with_spacing": len(spacings),
        "orientations": dict(sorted(orientations.items())),
        "readers": dict(sorted(Counter(record.reader for record in scan.cases).items())),
    }


def _file(record: Any) -> dict[str, Any]:
    fields = ("name", "file", "shape", "dtype", "spacing", "reader")
    content = {field: getattr(record, field) for field in fields}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in content.items()}
