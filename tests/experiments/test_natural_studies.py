"""The studies of naturally rare classes: their splits, and how much the place of a nodule gives away."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from shared import SHARED, needs_shared

from monai_margincal.experiments import Study

STUDY = Path(__file__).parents[2] / "docs" / "study"


def _study(name: str, data: str) -> Study:
    return Study.from_file(STUDY / f"{name}.yaml", {"data_root": str(SHARED / "data" / data)})


def _best_fixed_mask(nodules: np.ndarray) -> float:
    """Pooled IoU of the voxels that are most often a nodule, as many of them as are best: a bound for what the place tells."""
    often = np.sort(nodules.reshape(len(nodules), -1).sum(0))[::-1]
    hits = np.cumsum(often)
    sizes = np.arange(1, len(often) + 1) * len(nodules)
    return float((hits / (sizes + nodules.sum() - hits)).max())


@needs_shared
@pytest.mark.slow
def test_position_alone_earns_little_after_the_shift() -> None:
    """One mask for all cases, chosen in hindsight: what it earns without the shift, and with it."""
    study = _study("nodules", "lidc_cubes")
    items = [item for fold in study.folds("volumes") for item in study.cases("volumes", 0, fold).test]
    shifted = np.stack([case.label.numpy() > 0 for case in study.load("volumes", items)])
    assert shifted.shape == (115, 36, 36, 36)
    study.tasks["volumes"]["transform"] = [t for t in study.tasks["volumes"]["transform"] if t["_target_"] != "Lambda"]
    middle = np.stack([case.label.numpy() > 0 for case in study.load("volumes", items)])
    assert _best_fixed_mask(middle) == pytest.approx(0.277, abs=0.002)
    assert _best_fixed_mask(shifted) == pytest.approx(0.155, abs=0.002)


@needs_shared
def test_no_patient_is_on_two_sides() -> None:
    study = _study("nodules", "lidc_cubes")
    for task in study.tasks:
        tested = []
        for fold in study.folds(task):
            cases = study.cases(task, 0, fold)
            parts = (cases.training, cases.validation, cases.test)
            patients = [item["case"].split("_")[0] for part in parts for item in part]
            assert len(patients) == len(set(patients)) == 115
            tested += [item["case"] for item in cases.test]
        assert len(tested) == len(set(tested)) == 115


@needs_shared
def test_the_retina_has_its_official_split() -> None:
    study = _study("retina", "idrid_lesions")
    official = json.loads((SHARED / "data" / "idrid_lesions" / "splits.json").read_text(encoding="utf-8"))
    cases = study.cases("lesions", 0)
    assert [item["case"] for item in cases.test] == official["test"]
    assert {item["case"] for item in (*cases.training, *cases.validation)} <= set(official["train"])
    assert (len(cases.training), len(cases.validation)) == (40, 10)
