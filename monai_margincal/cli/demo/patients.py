"""The patients of the demo: to train on, to fit the decision on, and held out; one nodule each, no patient in two parts."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from ...samples import sample_dir

SAMPLES = "lidc_nodules"
CLASS_NAMES = ("background", "nodule")

#: of the patients that are not held out every seventh is for the decision: 22 of 150
_EVERY = 7


@dataclass(frozen=True)
class Patient:
    """One patient of the sample data, with the one nodule of theirs that travels with the package."""

    case: str
    name: str
    diameter_mm: float

    @property
    def image(self) -> str:
        """Path of the CT box."""
        return _path("images", self.case)

    @property
    def label(self) -> str:
        """Path of the true mask."""
        return _path("labels", self.case)


def demo_patients() -> dict[str, list[Patient]]:
    """List the patients of every part.

    Example:
        >>> {part: len(patients) for part, patients in demo_patients().items()}
        {'training': 128, 'validation': 22, 'held_out': 40}
    """
    with Path(sample_dir(SAMPLES), "cases.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    parts = {part: [_patient(row) for row in rows if row["part"] == part] for part in ("training", "held_out")}
    known = parts["training"]
    return {
        "training": [patient for number, patient in enumerate(known) if number % _EVERY],
        "validation": known[::_EVERY],
        "held_out": parts["held_out"],
    }


def _patient(row: dict[str, str]) -> Patient:
    return Patient(case=row["case"], name=row["patient_id"], diameter_mm=float(row["diameter_mm"]))


def _path(kind: str, case: str) -> str:
    return str(Path(sample_dir(SAMPLES), kind, f"{case}.nii.gz"))
