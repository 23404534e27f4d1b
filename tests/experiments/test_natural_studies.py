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


def _best_fixed_mask(training: np.ndarray, test: np.ndarray) -> float:
    """Pooled IoU on test of the voxels that are most often a nodule in training, as many of them as are best on *test*."""
    order = np.argsort(-training.mean(0).ravel(), kind="stable")
    hits = np.cumsum(test.reshape(len(test), -1).sum(0)[order])
    sizes = np.arange(1, len(order) + 1) * len(test)
    return float((hits / (sizes + test.sum() - hits)).max())


@needs_shared
@pytest.mark.slow
def test_position_alone_earns_little_after_the_shift() -> None:
    """A mask that is the same for every case, its size chosen in hindsight: 0.31 without the shift, 0.14 with it."""
    study = _study("nodules", "lidc_cubes")
    cases = study.cases("volumes", 0)
    shifted = {
        part: np.stack([case.label.numpy() > 0 for case in study.load("volumes", getattr(cases, part))])
        for part in ("training", "test")
    }
    assert shifted["test"].shape == (35, 36, 36, 36)
    study.tasks["volumes"]["transform"] = [t for t in study.tasks["volumes"]["transform"] if t["_target_"] != "Lambda"]
    middle = {
        part: np.stack([case.label.numpy() > 0 for case in study.load("volumes", getattr(cases, part))])
        for part in ("training", "test")
    }
    assert _best_fixed_mask(middle["training"], middle["test"]) == pytest.approx(0.31, abs=0.005)
    assert _best_fixed_mask(shifted["training"], shifted["test"]) == pytest.approx(0.14, abs=0.005)


@needs_shared
def test_no_patient_is_on_two_sides() -> None:
    study = _study("nodules", "lidc_cubes")
    for task in study.tasks:
        folds = study.folds(task)
        tested = []
        for fold in folds:
            cases = study.cases(task, 0, fold)
            parts = (cases.training, cases.validation, cases.test)
            patients = [item["case"].split("_")[0] for part in parts for item in part]
            assert len(patients) == len(set(patients)) == (105 if fold is None else 115)
            tested += [item["case"] for item in cases.test]
        assert len(tested) == len(set(tested)) == (35 if folds == [None] else 115)


@needs_shared
def test_the_retina_has_its_official_split() -> None:
    study = _study("retina", "idrid_lesions")
    official = json.loads((SHARED / "data" / "idrid_lesions" / "splits.json").read_text(encoding="utf-8"))
    cases = study.cases("lesions", 0)
    assert [item["case"] for item in cases.test] == official["test"]
    assert {item["case"] for item in (*cases.training, *cases.validation)} <= set(official["train"])
    assert (len(cases.training), len(cases.validation)) == (40, 10)
