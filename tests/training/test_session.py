"""What a session begins, keeps and ends."""

from __future__ import annotations

import json

import pytest
import torch
from ignite.metrics import Average
from monai.engines import SupervisedEvaluator, SupervisedTrainer
from monai.handlers import ValidationHandler

from monai_margincal.training import TrainingSession, WarmUpLoss


def training(folder, epochs, loss=None, rate=0.1, amp=False, **options):
    """Trainer and session of a tiny regression whose score is the mean prediction."""
    torch.manual_seed(0)
    network = torch.nn.Linear(1, 1)
    optimizer = torch.optim.Adam(network.parameters(), rate)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    data = [{"image": torch.ones(2, 1), "label": torch.full((2, 1), float(k))} for k in range(3)]
    score = Average(lambda output: output[0]["pred"].mean())
    evaluator = SupervisedEvaluator("cpu", data, network, key_val_metric={"score": score})
    session = TrainingSession(evaluator, network, optimizer, schedule, str(folder), str(folder), **options)
    trainer = SupervisedTrainer(
        "cpu", epochs, data, network, optimizer, loss or torch.nn.MSELoss(),
        train_handlers=[session, ValidationHandler(1, evaluator)], amp=amp,
    )  # fmt: skip
    return trainer, session


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_nothing_is_written_before_the_trainer_runs(tmp_path):
    trainer, _ = training(tmp_path / "new", 3, class_counts=[90, 10], save_interval=2)
    assert not (tmp_path / "new").exists()
    trainer.run()
    assert files(tmp_path / "new") == ["checkpoint_epoch=2.pt", "class_counts.json", "metrics.csv", "model.pt"]
    assert json.loads((tmp_path / "new" / "class_counts.json").read_text())["counts"] == [90, 10]
    state = torch.load(tmp_path / "new" / "checkpoint_epoch=2.pt", weights_only=True)
    assert set(state) == {"network", "optimizer", "lr_scheduler", "trainer", "validation"}


def test_without_counts_none_are_written(tmp_path):
    training(tmp_path, 1)[0].run()
    assert files(tmp_path) == ["checkpoint_epoch=1.pt", "metrics.csv", "model.pt"]


def test_pretrained_weights_are_there_before_the_run_and_stay_away_in_it(tmp_path):
    """A federated client puts the server's weights into the network between the two, before every round."""
    calls = []
    trainer, _ = training(tmp_path, 1, pretrained=lambda engine: calls.append(engine))
    assert calls == [trainer]
    trainer.run()
    trainer.state.max_epochs = 2
    trainer.run()
    assert calls == [trainer]


def test_a_trainer_that_runs_again_saves_once_per_epoch(tmp_path):
    trainer, _ = training(tmp_path, 1, save_interval=1)
    trainer.run()
    handlers = sum(map(len, trainer._event_handlers.values()))
    trainer.state.max_epochs = 2
    trainer.run()
    assert sum(map(len, trainer._event_handlers.values())) == handlers
    assert "checkpoint_epoch=2.pt" in files(tmp_path)


def test_the_state_is_taken_up_instead_of_the_pretrained_weights(tmp_path):
    training(tmp_path, 2)[0].run()
    state = tmp_path / "checkpoint_epoch=2.pt"
    calls = []
    trainer, _ = training(tmp_path, 3, resume_from=str(state), pretrained=calls.append)
    trainer.run()
    assert calls == []
    assert trainer.state.epoch == 3
    assert trainer.state.iteration == 9
    assert trainer.optimizer.state[trainer.network.weight]["step"] == 9


class Scaler:
    """Mixed precision's, without a GPU: its scale doubles with every step."""

    def __init__(self):
        self.doubled = 0

    def scale(self, loss):
        return loss

    def step(self, optimizer):
        optimizer.step()

    def update(self):
        self.doubled += 1

    def state_dict(self):
        return {"doubled": self.doubled}

    def load_state_dict(self, state):
        self.doubled = state["doubled"]


@pytest.mark.filterwarnings("ignore:.*autocast")
def test_the_scale_of_mixed_precision_goes_on(tmp_path, monkeypatch):
    """MONAI's trainer makes a new one whenever it runs: what is put back before that is lost."""
    monkeypatch.setattr(torch.cuda.amp, "GradScaler", Scaler)
    training(tmp_path, 2, amp=True)[0].run()
    trainer, _ = training(tmp_path, 3, amp=True, resume_from=str(tmp_path / "checkpoint_epoch=2.pt"))
    trainer.run()
    assert trainer.scaler.doubled == 9


def test_a_state_from_behind_the_last_epoch_is_named(tmp_path):
    training(tmp_path, 2)[0].run()
    trainer, _ = training(tmp_path, 1, resume_from=str(tmp_path / "checkpoint_epoch=2.pt"))
    with pytest.raises(ValueError, match=r"Epoch count \(2\) in checkpoint is larger than .* \(1\)"):
        trainer.run()


@pytest.mark.filterwarnings("error")
def test_it_stops_when_nothing_gets_better(tmp_path):
    trainer, _ = training(tmp_path, 9, early_stop_patience=2, rate=0.0)
    trainer.run()
    assert trainer.state.epoch == 3


def test_a_warm_up_follows_the_epochs(tmp_path):
    loss = WarmUpLoss(torch.nn.L1Loss(), 1, torch.nn.MSELoss())
    training(tmp_path, 2, loss)[0].run()
    assert int(loss.epoch) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": -1}, "seed must not be negative"),
        ({"save_interval": 0}, "save_interval: found 0, expected 1 epoch or more"),
        ({"early_stop_patience": -1}, "early_stop_patience: found -1, expected 0"),
    ],
)
def test_what_is_out_of_range_is_named(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        training(tmp_path, 1, **options)


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "weights", "number"])
def test_a_damaged_state_is_named(tmp_path, damage):
    training(tmp_path, 2)[0].run()
    state = tmp_path / "checkpoint_epoch=2.pt"
    if damage == "weights":
        torch.save(torch.nn.Linear(1, 1).state_dict(), state)
    elif damage == "number":
        torch.save(3, state)
    else:
        content = state.read_bytes()
        state.write_bytes({"cut": content[: len(content) // 2], "empty": b"", "text": b"no state"}[damage])
    trainer, _ = training(tmp_path, 3, resume_from=str(state))
    with pytest.raises(ValueError, match=r"checkpoint_epoch=2\.pt: cannot be loaded, expected a complete state"):
        trainer.run()
