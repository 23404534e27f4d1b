"""What a run leaves behind: one JSON, written anew after every step, and one CSV per part."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

from monai_margincal.files import write_text

NAME = "results.json"
#: of a part and of a step
NOT_STARTED, PASSED, FAILED, LEFT_OUT = "not started", "passed", "failed", "left out"


def empty(machine: dict[str, Any], parts: list[str]) -> dict[str, Any]:
    """The results before anything has run."""
    begun = {"status": NOT_STARTED, "reason": "", "seconds": 0.0, "steps": [], "rows": []}
    return {"machine": machine, "parts": {part: {**begun, "steps": [], "rows": []} for part in parts}}


def read(folder: Path) -> dict[str, Any]:
    """The results in a folder."""
    return json.loads((folder / NAME).read_text(encoding="utf-8"))


def save(folder: Path, results: dict[str, Any]) -> None:
    """Write the JSON and, of every part that has rows, the CSV; each whole or not at all."""
    for name, part in results["parts"].items():
        if part["rows"]:
            write_text(folder / f"{name}.csv", _csv(part["rows"]))
    write_text(folder / NAME, json.dumps(results, indent=1, allow_nan=False) + "\n")


def rows_of(table: Path) -> list[dict[str, Any]]:
    """The rows of a CSV, numbers as numbers and what is not finite as None; none if there is no such file."""
    if not table.is_file():
        return []
    with table.open(newline="", encoding="utf-8") as file:
        return [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(file)]


def _value(text: str | None) -> Any:
    if text is None:  # the line was not written to its end
        return None
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        return value if math.isfinite(value) else None
    return text


def _csv(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    fields = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(text, fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
