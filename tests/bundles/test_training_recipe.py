"""Warm-up, early stopping, and a resumed run that ends with the bits of an uninterrupted one."""

from __future__ import annotations

import logging
import shutil

import nibabel
import numpy as np
import pytest
import torch
from ignite.engine import Events

from monai_margincal.cli import main

FAST = {
    "patch_size": [32, 32],
    "slices_per_volume": 2,
    "batch_size": 1,
    "learning_rate": 0.002,
    "val_cases": ["a", "d"],
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    for index, case in enumerate("abcd"):
        image = np.random.RandomState(index).randint(-1000, 200, (40, 40, 3)).astype(np.int16)
        label = np.zeros(image.shape, np.uint8)
        label[8 : 16 + index, 10:24, 1] = case != "c"
        image[label == 1] = 50
        for kind, array in (("images", image), ("labels", label)):
            (root / kind).mkdir(exist_ok=True)
            nibabel.save(nibabel.Nifti1Image(array, np.diag([-0.7, -0.7, 5.0, 1.0])), root / kind / f"{case}.nii.gz")
    return root


@pytest.fixture
def train(workflow, data, tmp_path, monkeypatch):
    def run(**overrides):
        loaded = workflow(("train",), "train", dataset_dir=str(data), **{**FAST, **overrides})
        losses = []
        trainer = loaded.trainer
        trainer.add_event_handler(
            Events.ITERATION_COMPLETED, lambda engine: losses.append(engine.state.output[0]["loss"])
        )
        loaded.run()
        loaded.finalize()
        return loaded, losses

    return run


def equal(first, second):
    """Tensors, numbers and texts, in any nesting."""
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(equal(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(equal, first, second))
    return first == second


def test_a_resumed_run_ends_with_the_bits_of_an_uninterrupted_one(train, tmp_path):
    """Weights, optimiser, schedule, drawn crops, best metric and counter of early stopping; dropout draws, too."""
    recipe = {"epochs": 4, "warmup_epochs": 1, "early_stop_patience": 10}
    _, whole = train(**recipe)
    models = tmp_path / "models"
    expected = torch.load(models / "checkpoint_epoch=4.pt", weights_only=True)
    best = torch.load(models / "model.pt", weights_only=True)
    shutil.rmtree(models)

    # a schedule of four epochs that is stopped after two
    loaded, first = train(**recipe, **{"train#trainer#max_epochs": 2})
    assert loaded.parser["epochs"] == 4
    _, second = train(**recipe, resume_from=str(models / "checkpoint_epoch=2.pt"))
    assert first + second == whole
    actual = torch.load(models / "checkpoint_epoch=4.pt", weights_only=True)
    assert equal(actual, expected)
    assert set(actual) == {"network", "optimizer", "lr_scheduler", "trainer", "validation"}
    assert equal(torch.load(models / "model.pt", weights_only=True), best)


def test_a_resumed_run_keeps_the_better_model_of_the_first(train, tmp_path):
    """Without the list of best models the first validation after the resume takes the place of a better one."""
    train(epochs=2)
    models = tmp_path / "models"
    state = torch.load(models / "checkpoint_epoch=2.pt", weights_only=True)
    state["validation"].update(best_metric=0.99, best_metric_epoch=1, best_models={"_saved": [(0.99, "model.pt")]})
    torch.save(state, models / "better.pt")
    before = torch.load(models / "model.pt", weights_only=True)
    loaded, _ = train(epochs=3, resume_from=str(models / "better.pt"))
    assert equal(torch.load(models / "model.pt", weights_only=True), before)
    assert loaded.evaluator.state.best_metric == 0.99


def test_a_run_resumed_into_another_folder_saves_its_own_best_model(train, tmp_path, caplog):
    train(epochs=1)
    (tmp_path / "models").rename(tmp_path / "first")
    with caplog.at_level(logging.WARNING):
        train(epochs=2, resume_from=str(tmp_path / "first" / "checkpoint_epoch=1.pt"))
    assert "the best model of the resumed run, model.pt, is not in" in caplog.text
    assert (tmp_path / "models" / "model.pt").is_file()


def test_warm_up_uses_cross_entropy_first(train):
    recipe = {"epochs": 2, "loss": "margin"}
    _, cross_entropy = train(**{**recipe, "loss": "cross_entropy"})
    _, margin = train(**recipe)
    loaded, both = train(**recipe, warmup_epochs=1)
    steps = len(both) // 2
    assert both[:steps] == cross_entropy[:steps]
    assert both[steps:] != cross_entropy[steps:]
    assert both[0] != margin[0]
    loss = loaded.parser.get_parsed_content("loss_function")
    assert (type(loss.first).__name__, type(loss.then).__name__) == ("DiceCELoss", "MarginCalibrationLoss")


def test_early_stopping(train):
    """With a learning rate of 0 no validation is better than the first."""
    loaded, _ = train(epochs=9, early_stop_patience=2, learning_rate=0.0)
    assert loaded.trainer.state.epoch == 3
    assert loaded.trainer.should_terminate


@pytest.mark.parametrize("configs", [("train",), ("train", "evaluate")])
def test_a_misspelt_flag_stops_the_run(workflow, configs):
    """MONAI takes `--epochz 3` for a new key and trains 100 epochs."""
    with pytest.raises(RuntimeError) as raised:
        workflow(configs, "train", epochz=3)
    assert "unknown key 'epochz' (did you mean 'epochs'?)" in str(raised.value.__cause__)


def test_uestc_covid19_by_one_flag(workflow, tmp_path, capsys):
    """`margincal datalist uestc-covid19 ROOT` and `--datalist_file`: the paper's sections, on volumes of 16 x 16 x 2."""
    for kind in ("image", "label"):
        (tmp_path / "part2" / kind).mkdir(parents=True)
    for case in range(1, 51):
        label = np.zeros((16, 16, 2), np.uint8)
        label[3:9, 4:8, 0] = 1
        for kind, array in (("image", label.astype(np.int16) * 800 - 800), ("label", label)):
            nibabel.save(nibabel.Nifti1Image(array, np.eye(4)), tmp_path / "part2" / kind / f"case_{case}.nii.gz")
    path = tmp_path / "list.json"
    assert main(["datalist", "uestc-covid19", str(tmp_path), "--part", "2", "--output", str(path)]) == 0
    recipe = {"epochs": 1, "batch_size": 10, "patch_size": [16, 16], "slices_per_volume": 1}
    loaded = workflow(("train",), "train", datalist_file=str(path), dataset_dir="/not/used", **recipe)
    loaded.run()
    assert [item["case"] for item in loaded.val_dataset_data] == [f"part2_case_{case}" for case in range(31, 41)]
    assert len(loaded.train_dataset_data) == 30
    assert loaded.evaluator.state.metrics["val_iou_images_lesion"] == 10


def test_mlflow_by_one_flag(workflow, data, tmp_path):
    """MONAI's tracking takes the loss out of a decollated output; what is not one stops the training."""
    mlflow = pytest.importorskip("mlflow")
    loaded = workflow(("train",), "train", dataset_dir=str(data), epochs=1, tracking="mlflow", **FAST)
    loaded.run()
    client = mlflow.tracking.MlflowClient(f"sqlite:///{tmp_path}/eval/mlruns.db")
    (run,) = client.search_runs([client.get_experiment_by_name("monai_experiment").experiment_id])
    assert {"train_loss", "val_iou"} <= set(run.data.metrics)
