"""Running a study: paired, repeatable, resumable, by several processes; failures are recorded, not swallowed."""

from __future__ import annotations

import copy
import json
import math
import multiprocessing

import numpy as np
import pytest
import torch
from experiments.tiny_study import tiny_config, write_cases
from filelock import FileLock

from monai_margincal.experiments import Study, run_study
from monai_margincal.experiments.runner import load_record, record_path


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    return tiny_config(write_cases(tmp_path_factory.mktemp("data")))


@pytest.fixture(scope="module")
def finished(config, tmp_path_factory):
    """The whole tiny study, run once."""
    output = tmp_path_factory.mktemp("output")
    study = Study(config)
    seen = []
    summary = run_study(study, output, on_cell=lambda cell, record, done, total: seen.append((cell.name, done, total)))
    assert summary.errors == {}
    assert (summary.trained, summary.finished, summary.total) == (8, 8, 8)
    assert [done for _, done, _ in seen] == list(range(1, 9))
    return study, output


def test_every_cell_is_there_and_whole(finished):
    study, output = finished
    for cell in study.cells():
        record = load_record(output, cell)
        matrices = np.array(record["evaluation"]["confusion"]["argmax"])
        assert matrices.shape == (3, 3, 3)
        # every voxel of the test cases is counted, on the image's own grid
        assert (matrices.sum((1, 2)) == 12 * 14 * 3).all()
        assert np.sum(record["evaluation"]["margin_histogram"]) == 3 * 12 * 14 * 3
        assert len(record["evaluation"]["decoder_states"]["offsets"]["offsets"]) == 3
        assert record["history"]["steps"] == [0, 1, 2]
        assert sum(record["training_counts"]) == 3 * 12 * 14 * 3
        with np.load(record_path(output, cell).with_suffix(".npz"), allow_pickle=False) as arrays:
            assert set(arrays) == {f"{n}_{i}" for n in ("image", "truth", "prediction") for i in range(3)}
    assert not list((output / "cells").glob("*.lock"))


def test_objectives_start_from_the_same_weights(finished):
    """The first point of the validation curve is before any step: the same for all objectives of a seed, not for the other."""
    study, output = finished
    start = {
        cell.name: load_record(output, cell)["history"]["validation_miou"][0]
        for cell in study.cells()
        if cell.task == "slices"
    }
    assert len({value for name, value in start.items() if name.endswith("/0")}) == 1
    losses = {
        cell.seed: load_record(output, cell)["history"]["validation_loss"][0]
        for cell in study.cells()
        if cell.task == "slices" and cell.objective == "ce"
    }
    assert losses[0] != losses[1]


def test_fine_tuning_by_cross_entropy_continues_pretraining(finished):
    study, output = finished
    before = load_record(output, study.cell("slices", "pretraining", "", 0))
    after = load_record(output, study.cell("slices", "finetune", "ce", 0))
    assert after["history"]["validation_loss"][0] == pytest.approx(before["history"]["validation_loss"][-1], rel=1e-6)


def test_a_cell_that_is_run_again_gives_the_same_number(finished, tmp_path):
    study, output = finished
    cell = study.cell("slices", "finetune", "bound", 1)
    run_study(study, tmp_path, [cell])
    again, first = (load_record(folder, cell)["evaluation"]["confusion"] for folder in (tmp_path, output))
    assert again == first


def test_nothing_is_trained_twice_and_a_lost_cell_is_made_again(finished):
    study, output = finished
    assert run_study(study, output).trained == 0
    lost = study.cells()[2]
    before = load_record(output, lost)
    record_path(output, lost).unlink()
    summary = run_study(study, output)
    assert (summary.trained, summary.finished) == (1, 8)
    assert load_record(output, lost)["evaluation"] == before["evaluation"]


def test_a_changed_setting_never_meets_old_results(config, finished):
    _, output = finished
    other = copy.deepcopy(config)
    other["tasks"]["slices"]["optimizer"] = {"_target_": "torch.optim.AdamW", "lr": 0.02}
    study = Study(other)
    assert [load_record(output, cell) for cell in study.cells() if cell.task == "slices"] == [None] * 6
    assert all(load_record(output, cell) for cell in study.cells() if cell.task == "volumes")


def test_a_record_under_a_wrong_name_is_refused(finished, tmp_path):
    study, output = finished
    cell, other = study.cells()[:2]
    path = record_path(tmp_path, cell)
    path.parent.mkdir()
    path.write_bytes(record_path(output, other).read_bytes())
    with pytest.raises(ValueError, match="found the record of another cell"):
        load_record(tmp_path, cell)


def test_scratch_trains_both_budgets(config, tmp_path):
    other = copy.deepcopy(config)
    other["blocks"] = [{"tasks": ["slices"], "objectives": ["bound"], "protocols": ["scratch"], "seeds": [0]}]
    study = Study(other)
    (cell,) = study.cells()
    run_study(study, tmp_path)
    assert load_record(tmp_path, cell)["history"]["steps"] == [0, 1, 2, 3, 4, 5]
    assert not list((tmp_path / "cells").glob("*.pt"))


def test_one_broken_objective_does_not_stop_the_others(config, tmp_path):
    other = copy.deepcopy(config)
    other["objectives"]["broken"] = {"loss": {"_target_": "torch.nn.L1Loss"}}
    other["blocks"] = [{"tasks": ["slices"], "objectives": ["broken", "ce"], "seeds": [0]}]
    other["objectives"]["broken"]["loss"] = {"_target_": "monai.losses.DiceLoss", "softmax": True, "weight": [1.0]}
    study = Study(other)
    summary = run_study(study, tmp_path)
    assert (summary.trained, summary.finished, summary.total) == (1, 1, 2)
    assert list(summary.errors) == ["slices/finetune/broken/0"]
    (file,) = (tmp_path / "errors").iterdir()
    assert file.read_text().startswith("slices/finetune/broken/0\nTraceback")


class _Exploding(torch.nn.Module):
    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return input.sum() * math.nan


def test_a_diverged_run_is_a_result(config, tmp_path):
    other = copy.deepcopy(config)
    # the name that this module is imported under depends on how the tests are run
    other["objectives"]["nan"] = {"loss": {"_target_": f"{__name__}._Exploding"}}
    other["blocks"] = [{"tasks": ["slices"], "objectives": ["nan"], "seeds": [0]}]
    study = Study(other)
    summary = run_study(study, tmp_path)
    assert summary.errors == {}
    record = load_record(tmp_path, study.cells()[0])
    assert record["history"]["diverged"]
    assert record["history"]["steps"] == [0, 1]
    # NaN logits are background, not an error
    assert np.array(record["evaluation"]["confusion"]["argmax"])[..., 1:].sum() == 0


def test_another_process_cell_is_left_alone(config, tmp_path):
    """A locked cell is waited for, not trained twice; here its owner finishes it while we wait."""
    other = copy.deepcopy(config)
    other["blocks"] = [{"tasks": ["slices"], "objectives": ["ce", "margins"], "seeds": [0]}]
    study = Study(other)
    theirs, ours = study.cells()
    path = record_path(tmp_path, theirs)
    path.parent.mkdir()
    lock = FileLock(path.with_suffix(".lock"))
    lock.acquire()

    def on_cell(cell, record, done, total):
        assert cell.name == ours.name
        path.write_text(json.dumps({**record, "description": theirs.description}))
        lock.release()

    summary = run_study(study, tmp_path, on_cell=on_cell)
    assert (summary.trained, summary.finished) == (1, 2)


def _work(config, output) -> None:
    run_study(Study(config), output, progress=False)


def test_two_processes_share_the_queue(config, finished, tmp_path):
    """As under torchrun: together they train every cell once, and get what one process got."""
    context = multiprocessing.get_context("fork")  # a spawned process would import everything again
    workers = [context.Process(target=_work, args=(config, tmp_path)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    study, output = finished
    for cell in study.cells():
        found, expected = (load_record(folder, cell) for folder in (tmp_path, output))
        assert found["evaluation"] == expected["evaluation"]
    assert not (tmp_path / "errors").exists()
