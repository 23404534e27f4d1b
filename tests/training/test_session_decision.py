"""A decision lies beside the weights that it was fitted for, or there is none, however a training ends."""

from __future__ import annotations

import pytest
import torch
from monai.engines import SupervisedEvaluator, SupervisedTrainer
from monai.handlers import ValidationHandler, from_engine

from monai_margincal import ClassOffsets, ClassOffsetsHandler, DatasetIoUHandler
from monai_margincal.decisions.weights_digest import weights_digest
from monai_margincal.training import TrainingSession, whole_files


def training(folder, epochs, ious, cases=3, **options):
    """Trainer of a network of two logits; the key metric of its validations is what ``ious`` says."""
    torch.manual_seed(0)
    network = torch.nn.Conv1d(1, 2, 1)
    optimizer = torch.optim.Adam(network.parameters(), 0.05)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    data = []
    for seed in range(cases):
        label = (torch.rand(1, 1, 400, generator=torch.Generator().manual_seed(seed)) < 0.1).long()
        noise = torch.randn(1, 1, 400, generator=torch.Generator().manual_seed(seed + 9))
        data.append({"image": 2 * label + noise, "label": label})
    metric = DatasetIoUHandler(num_classes=2, output_transform=decided)
    metric.completed = lambda engine, name: engine.state.metrics.update({name: ious[engine.state.epoch - 1]})
    evaluator = SupervisedEvaluator("cpu", data, network, key_val_metric={"iou": metric})
    given = options.pop("offsets", ClassOffsetsHandler(folder / "decision.json", 2, network))
    session = TrainingSession(
        evaluator, network, optimizer, schedule, str(folder), str(folder), offsets=given, **options
    )
    loss = lambda logits, label: torch.nn.functional.cross_entropy(logits, label[:, 0])  # noqa: E731
    return SupervisedTrainer(
        "cpu", epochs, data, network, optimizer, loss, train_handlers=[session, ValidationHandler(1, evaluator)]
    )


def decided(output):
    logits, labels = from_engine(["pred", "label"])(output)
    return [x.argmax(0, keepdim=True) for x in logits], labels


def belongs(folder):
    weights = torch.load(folder / "model.pt", weights_only=True)
    return ClassOffsets.from_json(folder / "decision.json").fitted_on["weights"] == weights_digest(weights)


@pytest.mark.parametrize("ious", [(0.1, 0.2, 0.3), (0.3, 0.2, 0.1), (0.1, 0.3, 0.2)])
def test_the_decision_is_that_of_the_best_weights(ious, tmp_path):
    training(tmp_path, 3, ious).run()
    assert belongs(tmp_path)
    best = ious.index(max(ious)) + 1
    alone = tmp_path / "alone"
    training(alone, best, [0.1, 0.2, 0.3][:best]).run()
    assert (alone / "decision.json").read_text() == (tmp_path / "decision.json").read_text()


class Killed(BaseException):
    """Nothing that a program catches."""


def killing(*_, **__):
    raise Killed


def test_killed_between_weights_and_decision(tmp_path, monkeypatch):
    """The new weights are there and nothing says that the decision of the old ones is theirs; a resumed run catches up."""
    trainer = training(tmp_path, 2, (0.1, 0.2))
    fit_and_write, calls = ClassOffsetsHandler.fit_and_write, []

    def second_time(self, engine):
        calls.append(engine)
        return fit_and_write(self, engine) if len(calls) == 1 else killing()

    monkeypatch.setattr(ClassOffsetsHandler, "fit_and_write", second_time)
    with pytest.raises(Killed):
        trainer.run()
    assert not (tmp_path / "decision.json").exists()
    monkeypatch.undo()
    training(tmp_path, 2, (0.1, 0.2), resume_from=str(tmp_path / "checkpoint_epoch=1.pt")).run()
    assert belongs(tmp_path)
    training(tmp_path / "whole", 2, (0.1, 0.2)).run()
    assert (tmp_path / "decision.json").read_text() == (tmp_path / "whole" / "decision.json").read_text()


def test_killed_while_the_weights_are_written(tmp_path, monkeypatch):
    """Half of a file of weights has no name yet: the old weights keep their decision."""
    training(tmp_path, 1, (0.1,)).run()
    monkeypatch.setattr(whole_files.os, "fsync", killing)
    with pytest.raises(Killed):
        training(tmp_path, 1, (0.1,)).run()
    assert belongs(tmp_path)


def test_a_training_without_decision_leaves_none_of_others(tmp_path):
    training(tmp_path, 1, (0.1,)).run()
    torch.manual_seed(3)
    training(tmp_path, 2, (0.1, 0.2), offsets=None).run()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint_epoch=2.pt", "metrics.csv", "model.pt"]


def test_so_does_one_with_a_single_validation_case(tmp_path):
    training(tmp_path, 1, (0.1,)).run()
    training(tmp_path, 1, (0.1,), cases=1).run()
    assert not (tmp_path / "decision.json").exists()


def test_what_is_no_decision_is_left_alone(tmp_path):
    (tmp_path / "decision.json").write_text('{"mine": 1}')
    training(tmp_path, 1, (0.1,), offsets=None).run()
    with pytest.raises(FileExistsError, match=r"decision\.json: found a file that holds no class offsets"):
        training(tmp_path, 1, (0.1,)).run()
    assert (tmp_path / "decision.json").read_text() == '{"mine": 1}'


def test_resumed_into_another_folder(tmp_path):
    """There the next weights are saved although they are not the best of all; their decision belongs to them."""
    training(tmp_path / "a", 1, (0.9,)).run()
    training(tmp_path / "b", 2, (0.9, 0.1), resume_from=str(tmp_path / "a" / "checkpoint_epoch=1.pt")).run()
    assert belongs(tmp_path / "a")
    assert belongs(tmp_path / "b")


def test_a_file_elsewhere(tmp_path):
    elsewhere = tmp_path / "decisions" / "mine.json"
    training(tmp_path / "models", 2, (0.1, 0.2), offsets=ClassOffsetsHandler(elsewhere, 2)).run()
    assert elsewhere.exists()
    assert not (tmp_path / "models" / "decision.json").exists()
