"""Folds as one task, whole groups on one side: every case is tested once, and the report takes all folds for one run."""

from __future__ import annotations

import copy
import csv
import io

import numpy as np
import pytest
from experiments.tiny_study import tiny_config, write_cases

from monai_margincal.experiments import Study, run_study, write_study_report
from monai_margincal.experiments.pooled_folds import pooled_record
from monai_margincal.experiments.regret import task_regrets
from monai_margincal.experiments.results import collect_runs, results_csv
from monai_margincal.experiments.runner import load_record, record_path
from monai_margincal.experiments.scored_runs import scored_runs
from monai_margincal.experiments.task_cases import select_task_cases


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    config = tiny_config(write_cases(tmp_path_factory.mktemp("data")))
    task = config["tasks"]["slices"]
    del task["test"]
    task |= {"folds": 2, "training": 1, "validation": 0.25, "title": "slices in folds"}
    config["blocks"] = [{"tasks": ["slices"], "objectives": ["ce", "bound"]}]
    return config


@pytest.fixture(scope="module")
def finished(config, tmp_path_factory):
    study, output = Study(config), tmp_path_factory.mktemp("output")
    assert run_study(study, output).errors == {}
    return study, output


def test_every_case_is_tested_once_and_seeds_draw_training_cases(config):
    study = Study(config)
    assert [cell.name for cell in study.cells()][:5] == [
        "slices/finetune/ce/0/fold0",
        "slices/finetune/bound/0/fold0",
        "slices/finetune/ce/0/fold1",
        "slices/finetune/bound/0/fold1",
        "slices/finetune/ce/1/fold0",
    ]
    for seed in (0, 1):
        tested = [item["case"] for fold in (0, 1) for item in study.cases("slices", seed, fold).test]
        assert sorted(tested) == [f"case{i}" for i in range(8)]
    first, second = (study.cases("slices", seed, 0) for seed in (0, 1))
    assert first.test == second.test
    assert first.validation == second.validation
    assert len({study.cases("slices", seed, 0).training[0]["case"] for seed in range(8)}) == 2


def test_the_folds_of_a_seed_are_one_run_over_all_cases(finished):
    study, output = finished
    runs = collect_runs(study, output)
    assert [(run.cell.objective, run.cell.seed) for run in runs] == [("ce", 0), ("bound", 0), ("ce", 1), ("bound", 1)]
    parts = [load_record(output, cell) for cell in runs[0].cells]
    assert len(parts) == 2
    wanted = [m for part in parts for m in part["evaluation"]["confusion"]["offsets"]]
    np.testing.assert_array_equal(runs[0].confusion("offsets"), wanted)
    assert len(set(runs[0].record["evaluation"]["cases"])) == 8
    scored = scored_runs(study, runs)
    assert {run.fold_sizes for run in scored} == {(4, 4)}
    assert all(regret.chosen_elsewhere is not None for regret in task_regrets(scored))
    row = next(csv.DictReader(io.StringIO(results_csv(study, runs))))
    assert row["cell"] == "+".join(cell.key for cell in runs[0].cells)
    history = runs[0].record["history"]
    assert history["seconds"] == pytest.approx(sum(part["history"]["seconds"] for part in parts))
    assert history["validation_miou"] == pytest.approx(
        np.mean([part["history"]["validation_miou"] for part in parts], axis=0)
    )


def test_the_report_waits_for_all_folds(finished, tmp_path):
    study, output = finished
    files = write_study_report(study, output)
    assert "8 of 8 runs are finished" in (output / "tables.md").read_text()
    assert any(path.name == "slices_finetune_pretraining.png" for path in files)
    record_path(output, study.cell("slices", "finetune", "bound", 1, fold=1)).unlink()
    assert [(run.cell.objective, run.cell.seed) for run in collect_runs(study, output)][-1] == ("ce", 1)
    assert len(collect_runs(study, output)) == 3


def test_a_diverged_fold_makes_a_diverged_run_and_one_fold_stays_as_it_is(finished):
    study, output = finished
    record = load_record(output, study.cell("slices", "finetune", "ce", 0, fold=0))
    assert pooled_record([record]) is record
    broken = copy.deepcopy(record)
    broken["history"] |= {"diverged": True, "steps": [0, 1]}
    pooled = pooled_record([record, broken])["history"]
    assert pooled["diverged"]
    assert pooled["steps"] == [0, 1]
    assert len(pooled["validation_miou"]) == 2
    assert pooled["training_loss"][0] is None


def _select(data, training, validation, test, seed=0):
    parts = {"training": training, "validation": validation, "test": test}
    chosen = select_task_cases(data, parts, split_seed=seed, seed=seed, where="tasks::t", digest=lambda item: "")
    return {part: {item["case"] for item in getattr(chosen, part)} for part in parts}


PATIENTS = [{"case": f"p{p}_{i}", "group": f"p{p}"} for p in range(8) for i in range(3)]


@pytest.mark.parametrize("seed", range(4))
def test_a_patient_is_in_one_part(seed):
    parts = _select(PATIENTS, "rest", 0.25, 6, seed)
    assert {part: len(cases) for part, cases in parts.items()} == {"training": 12, "validation": 6, "test": 6}
    patients = {part: {case[:2] for case in cases} for part, cases in parts.items()}
    assert sum(map(len, patients.values())) == len(set.union(*patients.values())) == 8


def test_a_patient_in_two_parts_is_an_error():
    with pytest.raises(ValueError, match=r"tasks::t: found the group 'p0' in 'training' .* and in 'test'"):
        _select(PATIENTS, ["p0_0"], 3, ["p0_1"])
    with pytest.raises(ValueError, match="tasks::t: found the group 'p0'"):
        _select(PATIENTS, "rest", 0, ["p0_1"])
    assert _select(PATIENTS, ["p0_0"], "training", ["p1_1"])["validation"] == {"p0_0"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test": 2}, "tasks::slices: found both of the keys test and folds, expected one"),
        ({"folds": 1}, "tasks::slices::folds: found 1, expected a whole number from 2"),
        ({"folds": 99}, "folds: found 99 for 8 cases"),
    ],
)
def test_wrong_folds_are_named(config, change, message):
    wrong = copy.deepcopy(config)
    wrong["tasks"]["slices"] |= change
    with pytest.raises(ValueError, match=message):
        Study(wrong).cells()


def test_neither_test_nor_folds_is_an_error(config):
    wrong = copy.deepcopy(config)
    del wrong["tasks"]["slices"]["folds"]
    with pytest.raises(ValueError, match="tasks::slices: found neither of the keys test and folds, expected one"):
        Study(wrong)
