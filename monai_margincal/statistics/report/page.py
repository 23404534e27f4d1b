"""The HTML page: one file, no script, no network, dark and light, fit to print."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ...files import expect_writable, write_text
from ...findings import Finding
from ...pages import is_page, render
from ...pages.numbers import readable_share
from ...streams import is_stream
from .charts import cases_chart, drift_chart, frequency_chart
from .content import report_data
from .finding_groups import grouped
from .margin_chart import margin_curves
from .presence import exceptions, presence_map

#: the word by which a report is recognised
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
        counts: a `LabelScan` or anything that can be turned into a `ClassCounts`; see `report_data`.
        path: the HTML file; an older report is replaced, any other file is not.
        transformed: the same data after the training transforms, to show the drift.
        findings: what to list; see `report_data`.
        json_path: where to write the same data as JSON, or None.
        **options: ``tau``, ``upsilon``, ``normalization``, ``curve_taus``, ``title``: see `report_data`.

    Returns:
        what the page shows, as `report_data` gives it.

    Raises:
        FileExistsError: ``path`` or ``json_path`` exists and is not a report.
        OSError: one of them cannot be written; raised before anything else is done.
        ValueError: the counts or an option are invalid.

    Example:
        >>> import tempfile
        >>> from monai_margincal import ClassCounts
        >>> target = Path(tempfile.mkdtemp()) / "report.html"
        >>> data = write_report(ClassCounts([980, 20], names=["background", "lesion"]), target, title="Two classes")
        >>> "<h1>Two classes</h1>" in target.read_text(encoding="utf-8")
        True
    """
    expect_replaceable(path, json_path)
    data = report_data(counts, transformed, findings, **options)
    write_text(path, render_report(data))
    if json_path is not None:
        write_text(json_path, json.dumps(data, indent=1) + "\n")
    return data


def expect_replaceable(path: str | os.PathLike[str], json_path: str | os.PathLike[str] | None = None) -> None:
    """Raise now what `write_report` would raise about its files, before there is anything to write.

    Raises:
        FileExistsError: a file exists and is not a report.
        OSError: a file cannot be written; the message names it.
    """
    expect_writable(path)
    if _holds_something(path) and not is_page(Path(path), _KIND):
        raise FileExistsError(f"{path} exists and is not a report of ours, so it is not overwritten")
    if json_path is not None:
        expect_writable(json_path)
        if _holds_something(json_path) and not _is_report_json(Path(json_path)):
            raise FileExistsError(f"{json_path} exists and is not the data of a report, so it is not overwritten")


def _holds_something(path: str | os.PathLike[str]) -> bool:
    return Path(path).exists() and not is_stream(path)


def _is_report_json(path: Path) -> bool:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("format") == "monai_margincal.report"


def render_report(data: dict[str, Any]) -> str:
    """The page for what `report_data` gives."""
    presence = exceptions(data) if data["cases"] else []
    mapped = [row for row in presence if not row.are_listed]
    return render(
        "statistics/report/page.html",
        kind=_KIND,
        title=data["title"],
        data=data,
        says=_says(data),
        facts=_facts(data),
        groups=grouped(data["findings"]),
        frequency_chart=_frequency_chart(data),
        cases_chart=_cases_chart(data) if data["cases"] else None,
        margin_curves=_margin_curves(data),
        presence=presence,
        complete=[row.label for row in presence if not row.absent and not row.unknown],
        presence_map=presence_map(mapped, sorted(data["cases"])) if mapped else None,
        drift_chart=drift_chart(_labels(data), data["drift"]["ratios"]) if data["drift"] else None,
    )


def _labels(data: dict[str, Any]) -> list[str]:
    return [row["label"] for row in data["classes"]]


def _says(data: dict[str, Any]) -> str:
    """What the page comes to, in two or three sentences: the rarest class, the recipe for it, and what needs a look."""
    said = []
    recipe = data["recipe"]
    if not recipe.get("error"):
        loss = recipe["loss"].partition("(")[0]
        said.append(
            f"The rarest class, {recipe['rarest']}, has {readable_share(recipe['share'])} of the voxels. The guide's choice for "
            f"“{recipe['case']}”: {loss}, and for the decision {recipe['decision']}."
        )
    counts = dict.fromkeys(("error", "warning"), 0)
    for finding in data["findings"]:
        if finding["severity"] in counts:
            counts[finding["severity"]] += 1
    found = [f"{number} {word}{'' if number == 1 else 's'}" for word, number in counts.items() if number]
    kinds = dict.fromkeys(one["kind"] for one in data["findings"] if one["severity"] in counts and one["kind"])
    if found:
        said.append(f"To be looked at first: {' and '.join(found)} ({', '.join(kinds)}).")
    else:
        said.append("Nothing was found that needs a look.")
    return " ".join(said)


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
    shares = [row["frequency"] or 0.0 for row in data["classes"]]
    return frequency_chart(_labels(data), shares, [readable_share(share) for share in shares])


def _cases_chart(data: dict[str, Any]) -> Markup:
    rows = data["classes"]
    shares = [row["cases_with"] / row["cases_annotated"] if row["cases_annotated"] else None for row in rows]
    notes = [f"{row['cases_with']} of {row['cases_annotated']}" for row in rows]
    return cases_chart(_labels(data), shares, notes)


def _margin_curves(data: dict[str, Any]) -> Markup | None:
    margins = data["margins"]
    if margins["error"]:
        return None
    curves = [(curve["tau"], curve["negative"]) for curve in margins["curves"]]
    return margin_curves(_labels(data), [row["frequency"] or 0.0 for row in data["classes"]], curves, margins["tau"])
