"""What a session writes into the weights about the planes that they are trained on."""

from __future__ import annotations

import pytest
import torch
from ignite.metrics import Average
from monai.engines import SupervisedEvaluator, SupervisedTrainer
from monai.handlers import ValidationHandler

from monai_margincal.networks import COPLENet, COPLENetCheckpointLoader, trained_plane
from monai_margincal.training import TrainingSession


class Seen(Average):
    """The side of the planes that validation knew of, as its score."""

    def __init__(self, network):
        super().__init__(lambda _: float((trained_plane(network) or (0, 0))[0]))


def training(folder, epochs, weights=None, **options):
    torch.manual_seed(0)
    network = COPLENet(features=(2, 4, 8, 16, 32))
    if weights is not None:
        options["pretrained"] = COPLENetCheckpointLoader(str(weights), {"network": network})
    optimizer = torch.optim.SGD(network.parameters(), 0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    data = [{"image": torch.rand(2, 1, 16, 16), "label": torch.rand(2, 2, 16, 16)}]
    evaluator = SupervisedEvaluator("cpu", data, network, key_val_metric={"side": Seen(network)})
    session = TrainingSession(evaluator, network, optimizer, schedule, str(folder), str(folder), **options)
    return SupervisedTrainer(
        "cpu", epochs, data, network, optimizer, torch.nn.MSELoss(),
        train_handlers=[session, ValidationHandler(1, evaluator)],
    )  # fmt: skip


def saved(path):
    content = torch.load(path, weights_only=True)
    return content.get("network", content)["trained_plane"].tolist()


def test_it_goes_into_every_file_and_validation_knows_it(tmp_path):
    trainer = training(tmp_path, 1, trained_plane=[16, 32])
    assert trained_plane(trainer.network) is None
    trainer.run()
    assert saved(tmp_path / "model.pt") == saved(tmp_path / "checkpoint_epoch=1.pt") == [16, 32]
    state = torch.load(tmp_path / "checkpoint_epoch=1.pt", weights_only=True)
    assert state["validation"]["best_metric"] == 16


def test_without_it_the_weights_keep_what_they_say(tmp_path):
    trainer = training(tmp_path, 1)
    trainer.run()
    assert saved(tmp_path / "model.pt") == [0, 0]


def test_the_last_training_counts(tmp_path):
    """Weights to start from, and a state to continue from, were trained on other planes."""
    training(tmp_path / "a", 1, trained_plane=[16, 16]).run()
    state = str(tmp_path / "a" / "checkpoint_epoch=1.pt")
    training(tmp_path / "b", 2, trained_plane=[32, 32], resume_from=state).run()
    assert saved(tmp_path / "b" / "checkpoint_epoch=2.pt") == [32, 32]

    training(tmp_path / "c", 1, trained_plane=[32, 32], weights=tmp_path / "a" / "model.pt").run()
    assert saved(tmp_path / "c" / "model.pt") == [32, 32]


def test_weights_that_come_between_two_runs_do_not_take_it_away(tmp_path):
    """A federated client gets the server's weights before every round."""
    trainer = training(tmp_path, 1, trained_plane=[16, 32])
    for epoch in (1, 2):
        trainer.network.load_state_dict(COPLENet(features=(2, 4, 8, 16, 32)).state_dict())
        trainer.state.max_epochs = epoch
        trainer.run()
        assert trained_plane(trainer.network) == (16, 32)


def test_what_is_no_size_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"trained plane: found \[16\], expected two whole numbers"):
        training(tmp_path, 1, trained_plane=[16]).run()
