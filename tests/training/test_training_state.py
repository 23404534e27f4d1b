"""The state beside network and optimiser: kept, read back by `weights_only`, and put back."""

from __future__ import annotations

import torch
from ignite.handlers import EarlyStopping
from monai.engines import SupervisedEvaluator, SupervisedTrainer
from monai.handlers import CheckpointSaver

from monai_margincal.training import TrainingState


def state(folder):
    network = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(network.parameters(), 0.1)
    trainer = SupervisedTrainer("cpu", 1, [0], network, optimizer, torch.nn.MSELoss())
    evaluator = SupervisedEvaluator("cpu", [0], network)
    saver = CheckpointSaver(str(folder), {"network": network}, save_key_metric=True, key_metric_filename="model.pt")
    saver.attach(evaluator)
    stop = EarlyStopping(3, lambda engine: engine.state.metrics["iou"], trainer)
    return TrainingState(trainer, evaluator, saver, stop)


def validate(kept, iou):
    """What one validation does to saver and early stopping."""
    kept.evaluator.state.metrics["iou"] = iou
    kept.evaluator.state.key_metric_name = "iou"
    kept.best_model.metrics_completed(kept.evaluator)
    kept.early_stop(kept.evaluator)


def test_round_trip(tmp_path):
    first = state(tmp_path)
    first.evaluator.state.best_metric, first.evaluator.state.best_metric_epoch = 0.75, 4
    validate(first, 0.75)
    validate(first, 0.5)
    torch.save(first.state_dict(), tmp_path / "state.pt")
    saved = torch.load(tmp_path / "state.pt", weights_only=True)
    second = state(tmp_path)
    second.load_state_dict(saved)
    assert second.state_dict() == first.state_dict()
    assert saved["early_stop"]["counter"] == 1
    written = (tmp_path / "model.pt").stat().st_mtime_ns
    validate(second, 0.6)
    assert (tmp_path / "model.pt").stat().st_mtime_ns == written, "0.6 is not better than 0.75"
    validate(second, 0.8)
    assert (tmp_path / "model.pt").stat().st_mtime_ns > written


def test_a_rank_that_saves_nothing_reads_the_state_of_the_first(tmp_path):
    first = state(tmp_path)
    validate(first, 0.75)
    other = state(tmp_path)
    other.best_model = None
    other.load_state_dict(first.state_dict())
    assert other.state_dict()["best_models"] == {}
    assert other.state_dict()["early_stop"] == first.state_dict()["early_stop"]
