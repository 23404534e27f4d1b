"""The HTML page: one file, no script, no network, dark and light, fit to print."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from ...files import write_text
from ...findings import Finding
from .charts import drift_chart, frequency_chart, margin_curves, percent, presence_map, shown
from .content import report_data

#: first words of every page, by which a report is known again
_MARK = "<!DOCTYPE html>\n<!-- monai_margincal report -->\n"
_MOST_FILES = 12


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
    if target.exists() and not target.read_bytes().startswith(_MARK.encode()):
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
    style = (files(__package__) / "style.css").read_text(encoding="utf-8")
    sections = [
        _facts(data),
        _frequencies(data),
        _margins(data),
        _presence(data),
        _drift(data),
        _findings(data),
        _paste(data),
        _files(data),
    ]
    # a file name must not end the element that carries the data
    embedded = json.dumps(data).replace("<", "\\u003c")
    return (
        f'{_MARK}<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(data['title'])}</title><style>\n{style}</style></head><body><main>"
        f"{''.join(section for section in sections if section)}"
        f'<script type="application/json" id="report-data">{embedded}</script></main></body></html>\n'
    )


def _section(heading: str, explanation: str, body: str) -> str:
    return f'<section><h2>{escape(heading)}</h2><p class="muted">{explanation}</p>{body}</section>'


def _labels(data: dict[str, Any]) -> list[str]:
    return [row["label"] for row in data["classes"]]


def _facts(data: dict[str, Any]) -> str:
    facts = [
        (f"{data['case_count']:,}", "cases"),
        (f"{data['total']:,}", "voxels"),
        (str(len(data["classes"])), "classes"),
    ]
    if data["ignored"]:
        facts.append((f"{data['ignored']:,}", "voxels ignored"))
    geometry = data["geometry"] or {}
    if geometry.get("median_spacing"):
        facts.append((" × ".join(f"{value:.3g}" for value in geometry["median_spacing"]), "median spacing, mm"))
    if geometry.get("median_shape"):
        facts.append((" × ".join(f"{value:.0f}" for value in geometry["median_shape"]), "median size, voxels"))
    severe = sum(finding["severity"] == "error" for finding in data["findings"])
    if data["findings"]:
        facts.append((f"{len(data['findings'])} ({severe})", "findings (errors)"))
    boxes = "".join(f"<div><b>{escape(value)}</b><span>{escape(name)}</span></div>" for value, name in facts)
    source = escape(data["source"] or "source not recorded")
    return f'<h1>{escape(data["title"])}</h1><p class="muted">Counted: {source}</p><div class="facts">{boxes}</div>'


def _frequencies(data: dict[str, Any]) -> str:
    rows = data["classes"]
    shares = [row["frequency"] or 0.0 for row in rows]
    of_cases = [row["cases_with"] / row["cases_annotated"] if row["cases_annotated"] else None for row in rows]
    notes = [
        f"{percent(share)}" + (f" · {row['cases_with']} of {row['cases_annotated']}" if row["cases_annotated"] else "")
        for row, share in zip(rows, shares, strict=True)
    ]
    legend = '<p class="legend"><i style="background:var(--voxels)"></i>share of all voxels'
    legend += '<i style="background:var(--cases)"></i>share of the cases</p>'
    chart = frequency_chart(_labels(data), shares, of_cases, notes)
    return _section("How frequent is each class?", "Both on one logarithmic axis.", legend + chart)


def _margins(data: dict[str, Any]) -> str:
    margins = data["margins"]
    if margins["error"]:
        return _section("Margins", "There are none for these counts:", f"<p>{escape(margins['error'])}</p>")
    head = (
        '<tr><th>class</th><th class="number">voxels</th><th class="number">share</th>'
        '<th class="number">margin against others ρ<sub>0k</sub></th>'
        '<th class="number">margin for its own voxels ρ<sub>k0</sub></th></tr>'
    )
    body = "".join(
        f'<tr><td>{escape(row["label"])}</td><td class="number">{row["voxels"]:,}</td>'
        f'<td class="number">{percent(row["frequency"] or 0.0)}</td><td class="number">{shown(negative)}</td>'
        f'<td class="number">{shown(positive)}</td></tr>'
        for row, negative, positive in zip(data["classes"], margins["negative"], margins["positive"], strict=True)
    )
    chart = margin_curves(
        _labels(data),
        [row["frequency"] or 0.0 for row in data["classes"]],
        [(curve["tau"], curve["negative"]) for curve in margins["curves"]],
        margins["tau"],
    )
    explanation = (
        f"Corollary 1.1 with τ = {margins['tau']:g}, υ = {margins['upsilon']:g}, normalization "
        f"“{escape(margins['normalization'])}”. The rarer a class, the larger the margin that other voxels must keep from it. "
        "The curves show ρ<sub>0k</sub> for several τ."
    )
    return _section("Margins", explanation, f'<div class="wide"><table>{head}{body}</table></div>{chart}')


def _presence(data: dict[str, Any]) -> str:
    cases = data["cases"]
    if not cases:
        return ""
    names = sorted(cases)
    shares: list[list[float | None]] = []
    for place, row in enumerate(data["classes"]):
        per_case: list[float | None] = []
        for name in names:
            counts, annotated = cases[name]["counts"], cases[name]["annotated"]
            unknown = annotated is not None and row["id"] not in annotated
            per_case.append(None if unknown else counts[place] / max(sum(counts), 1))
        shares.append(per_case)
    explanation = (
        "The darker, the larger the class's share of the case, relative to its largest share in any case. Empty: absent. "
        "Hatched: not annotated in that case."
    )
    return _section("Which class occurs in which case?", explanation, presence_map(_labels(data), names, shares))


def _drift(data: dict[str, Any]) -> str:
    drift = data["drift"]
    if drift is None:
        return ""
    explanation = (
        f"Share of the voxels {escape(drift['source'] or 'after the transforms')}, relative to the share in the raw labels. "
        "Margins and weights belong to what the network sees."
    )
    return _section("What do the transforms change?", explanation, drift_chart(_labels(data), drift["ratios"]))


def _findings(data: dict[str, Any]) -> str:
    if not data["findings"]:
        text = "Nothing was found." if data["geometry"] else "Not looked for: the report was made from counts alone."
        return _section("Findings", text, "")
    rows = []
    for finding in data["findings"]:
        places = "<br>".join(escape(name) for name in finding["files"][:_MOST_FILES])
        rest = finding["files"][_MOST_FILES:]
        if rest:
            more = "<br>".join(escape(name) for name in rest)
            places += f"<details><summary>and {len(rest)} more</summary>{more}</details>"
        rows.append(
            f'<tr><td class="{escape(finding["severity"])}">{escape(finding["severity"])}</td><td>{escape(finding["kind"])}</td>'
            f'<td>{escape(finding["message"])}<div class="file">{places}</div></td></tr>'
        )
    table = (
        f'<div class="wide"><table><tr><th>severity</th><th>what</th><th>found</th></tr>{"".join(rows)}</table></div>'
    )
    return _section("Findings", "What deserves a look before training, most severe first.", table)


def _paste(data: dict[str, Any]) -> str:
    margins = data["margins"]
    if margins["error"]:
        return ""
    config = json.dumps({"loss": margins["config"]}, indent=2)
    explanation = (
        f"The margins above for a bundle's <code>train.json</code>; classes in the order of the ids {_ids(data)}."
    )
    return _section("Ready to paste", explanation, f"<pre>{escape(config)}</pre>")


def _ids(data: dict[str, Any]) -> str:
    return escape(", ".join(str(row["id"]) for row in data["classes"]))


def _files(data: dict[str, Any]) -> str:
    if not data["files"]:
        return ""
    readers = data["geometry"]["readers"]
    summary = "".join(
        f'<tr><td>{escape(reader)}</td><td class="number">{count}</td></tr>' for reader, count in readers.items()
    )
    rows = "".join(
        f"<tr><td>{escape(record['name'])}</td><td>{'×'.join(map(str, record['shape'] or []))}</td>"
        f"<td>{escape(record['dtype'])}</td><td>{escape(record['reader'])}</td></tr>"
        for record in data["files"]
    )
    table = f'<div class="wide"><table><tr><th>read by</th><th class="number">cases</th></tr>{summary}</table></div>'
    table += (
        f"<details><summary>every case</summary><div class='wide'><table><tr><th>case</th><th>size</th><th>type</th>"
        f"<th>read by</th></tr>{rows}</table></div></details>"
    )
    return _section("How the labels were read", "Streams are counted while they are decoded.", table)
