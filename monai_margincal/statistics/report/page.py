"""The HTML page: one file, no script, no network, dark and light, fit to print."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ...files import write_text
from ...findings import Finding
from ...pages import is_page, render
from ...pages.numbers import percent
from .charts import drift_chart, frequency_chart, margin_curves, presence_map
from .content import report_data

#: the word by which a report is known again
_KIND = "report"
#: the axes of sizes and spacings
_AXES = "right, anterior, superior"


def write_report(
    counts: Any,
    path: str | os.PathLike[str],
    transformed: Any = None,
    findings: Iterable[Finding] | None = None,
    json_path: str | os.PathLike[str] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Write the report on the class statistics of a data set as one HTML file.

    Args:
        counts: a `LabelScan` or whatever makes a `ClassCounts`; see `report_data`.
        path: the HTML file; an older report is replaced, any other file is not.
        transformed: the same data after the training transforms, to show the drift.
        findings: what to list; see `report_data`.
        json_path: where to write the same data as JSON, or None.
        **options: ``tau``, ``upsilon``, ``normalization``, ``curve_taus``, ``title``: see `report_data`.

    Returns:
        what the page shows, as `report_data` gives it.

    Raises:
        FileExistsError: ``path`` or ``json_path`` exists and is no report.
        ValueError: the counts or an option are invalid.

    Example:
        >>> import tempfile
        >>> from monai_margincal import ClassCounts
        >>> target = Path(tempfile.mkdtemp()) / "report.html"
        >>> data = write_report(ClassCounts([980, 20], names=["background", "lesion"]), target, title="Two classes")
        >>> "<h1>Two classes</h1>" in target.read_text(encoding="utf-8")
        True
    """
    data = report_data(counts, transformed, findings, **options)
    target = Path(path)
    if target.exists() and not is_page(target, _KIND):
        raise FileExistsError(f"{target} exists and is no report of ours, so it is not overwritten")
    if json_path is not None and Path(json_path).exists() and not _is_report_json(Path(json_path)):
        raise FileExistsError(f"{json_path} exists and is not the data of a report, so it is not overwritten")
    write_text(target, render_report(data))
    if json_path is not None:
        write_text(json_path, json.dumps(data, indent=1) + "\n")
    return data


def _is_report_json(path: Path) -> bool:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return isinstance(content, dict) and content.get("format") == "monai_margincal.report"


def render_report(data: dict[str, Any]) -> str:
    """The page for what `report_data` gives."""
    return render(
        "statistics/report/page.html",
        kind=_KIND,
        title=data["title"],
        data=data,
        facts=_facts(data),
        frequency_chart=_frequency_chart(data),
        margin_curves=_margin_curves(data),
        presence_map=_presence_map(data),
        drift_chart=drift_chart(_labels(data), data["drift"]["ratios"]) if data["drift"] else None,
        loss_config=json.dumps({"loss": data["margins"].get("config")}, indent=2),
    )


def _labels(data: dict[str, Any]) -> list[str]:
    return [row["label"] for row in data["classes"]]


def _facts(data: dict[str, Any]) -> list[tuple[str, str]]:
    """The boxes at the top: value and what it is."""
    facts = [
        (f"{data['case_count']:,}", "cases"),
        (f"{data['total']:,}", "voxels"),
        (str(len(data["classes"])), "classes"),
    ]
    if data["ignored"]:
        facts.append((f"{data['ignored']:,}", "voxels ignored"))
    geometry = data["geometry"] or {}
    if geometry.get("median_spacing"):
        facts.append(
            (
                " × ".join(f"{value:.3g}" for value in geometry["median_spacing"]),
                f"median spacing, mm ({_AXES})",
            )
        )
    if geometry.get("median_shape"):
        facts.append(
            (
                " × ".join(f"{value:.0f}" for value in geometry["median_shape"]),
                f"median size, voxels ({_AXES})",
            )
        )
    severe = sum(finding["severity"] == "error" for finding in data["findings"])
    if data["findings"]:
        facts.append((f"{len(data['findings'])} ({severe})", "findings (errors)"))
    return facts


def _frequency_chart(data: dict[str, Any]) -> Markup:
    rows = data["classes"]
    shares = [row["frequency"] or 0.0 for row in rows]
    of_cases = [row["cases_with"] / row["cases_annotated"] if row["cases_annotated"] else None for row in rows]
    notes = [
        percent(share) + (f" · {row['cases_with']} of {row['cases_annotated']}" if row["cases_annotated"] else "")
        for row, share in zip(rows, shares, strict=True)
    ]
    return frequency_chart(_labels(data), shares, of_cases, notes)


def _margin_curves(data: dict[str, Any]) -> Markup | None:
    margins = data["margins"]
    if margins["error"]:
        return None
    curves = [(curve["tau"], curve["negative"]) for curve in margins["curves"]]
    return margin_curves(_labels(data), [row["frequency"] or 0.0 for row in data["classes"]], curves, margins["tau"])


def _presence_map(data: dict[str, Any]) -> Markup | None:
    cases = data["cases"]
    if not cases:
        return None
    names = sorted(cases)
    shares: list[list[float | None]] = []
    for place, row in enumerate(data["classes"]):
        per_case: list[float | None] = []
        for name in names:
            counts, annotated = cases[name]["counts"], cases[name]["annotated"]
            unknown = annotated is not None and row["id"] not in annotated
            per_case.append(None if unknown else counts[place] / max(sum(counts), 1))
        shares.append(per_case)
    return presence_map(_labels(data), names, shares)
