"""Warm-up, early stopping, and a resumed run that ends with the bits of an uninterrupted one."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys

import nibabel
import numpy as np
import pytest
import torch
from ignite.engine import Events
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

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
    def run(loss=None, **overrides):
        files = ("train", f"losses/{loss}") if loss else ("train",)
        loaded = workflow(files, "train", dataset_dir=str(data), **{**FAST, **overrides})
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


def uninterrupted(train, models, recipe):
    """The losses of a run of four epochs, its last state and its best weights; nothing of it is left on the disk."""
    _, whole = train(**recipe)
    expected = torch.load(models / "checkpoint_epoch=4.pt", weights_only=True)
    best = torch.load(models / "model.pt", weights_only=True)
    shutil.rmtree(models)
    return whole, expected, best


def test_a_resumed_run_ends_with_the_bits_of_an_uninterrupted_one(train, tmp_path):
    """Weights, optimiser, schedule, drawn crops, best metric and counter of early stopping; dropout draws, too."""
    recipe = {"epochs": 4, "warmup_epochs": 1, "early_stop_patience": 10}
    models = tmp_path / "models"
    whole, expected, best = uninterrupted(train, models, recipe)

    # a schedule of four epochs that is stopped after two
    loaded, first = train(**recipe, **{"train#trainer#max_epochs": 2})
    assert loaded.parser["epochs"] == 4
    _, second = train(**recipe, resume_from=str(models / "checkpoint_epoch=2.pt"))
    assert first + second == whole
    actual = torch.load(models / "checkpoint_epoch=4.pt", weights_only=True)
    assert equal(actual, expected)
    assert set(actual) == {"network", "optimizer", "lr_scheduler", "trainer", "validation"}
    assert equal(torch.load(models / "model.pt", weights_only=True), best)


@pytest.mark.slow
def test_a_run_killed_within_an_epoch_goes_on_as_if_it_had_not_been(train, data, bundle, tmp_path):
    """SIGKILL in the third of four epochs: what is on the disk is whole, and gives the bits of an uninterrupted run."""
    recipe = {"epochs": 4, "warmup_epochs": 1, "early_stop_patience": 10}
    models = tmp_path / "models"
    whole, expected, best = uninterrupted(train, models, recipe)

    flags = {
        "config_file": bundle / "configs" / "train.json", "bundle_root": bundle, "dataset_dir": data, "device": "cpu",
        "output_dir": tmp_path / "eval", "ckpt_dir": models, "features": [8, 16, 32, 64, 128], "num_workers": 0, **FAST, **recipe,
    }  # fmt: skip
    line = [sys.executable, "-u", "-m", "monai.bundle", "run"]
    line += [text for key, value in flags.items() for text in (f"--{key}", str(value))]
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}
    with subprocess.Popen(
        line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        printed = []
        for text in process.stdout:
            printed.append(text)
            if "Epoch: 3/4, Iter: 1/2" in text:
                process.send_signal(signal.SIGKILL)
                break
    assert process.returncode == -signal.SIGKILL, "".join(printed)

    _, rest = train(**recipe, resume_from=str(models / "checkpoint_epoch=2.pt"))
    assert rest == whole[len(whole) // 2 :]
    assert equal(torch.load(models / "checkpoint_epoch=4.pt", weights_only=True), expected)
    assert equal(torch.load(models / "model.pt", weights_only=True), best)


def test_a_stopped_run_that_is_resumed_keeps_its_patience(train, tmp_path):
    """Two validations without a better one before the resume and one after: three in all."""
    recipe = {"epochs": 9, "early_stop_patience": 3, "learning_rate": 0.0}
    train(**recipe, **{"train#trainer#max_epochs": 3})
    loaded, _ = train(**recipe, resume_from=str(tmp_path / "models" / "checkpoint_epoch=3.pt"))
    assert loaded.trainer.state.epoch == 4


@pytest.mark.parametrize("num_workers", [0, 2])
def test_the_seed_decides_every_bit(train, num_workers):
    """Model-zoo issues 362 and 717, with worker processes, too."""
    runs = [train(epochs=2, num_workers=num_workers, seed=seed) for seed in (5, 5, 6)]
    weights = [loaded.network_def.state_dict() for loaded, _ in runs]
    losses = [curve for _, curve in runs]
    assert losses[0] == losses[1]
    assert equal(weights[0], weights[1])
    assert not set(losses[0]) & set(losses[2])


def test_what_makes_a_gpu_faster_changes_no_bit_on_a_cpu(train):
    _, plain = train(epochs=1, channels_last=False)
    _, loss = train(epochs=1, cache_rate=1.0, **{"initialize#0#cudnn_benchmark": True})
    assert loss == plain


def test_cudnn_searches_where_it_is_asked_to(train, monkeypatch):
    for name in ("benchmark", "deterministic"):
        monkeypatch.setattr(torch.backends.cudnn, name, getattr(torch.backends.cudnn, name))
    for search in (False, True):
        train(epochs=1, **{"initialize#0#cudnn_benchmark": search})
        assert (torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic) == (search, not search)


def test_mixed_precision_without_a_gpu_is_single_precision_and_pytorch_says_so(train):
    _, single = train(epochs=1)
    with pytest.warns(UserWarning, match="CUDA is not available.*Disabling autocast"):
        _, asked = train(epochs=1, amp=True)
    assert asked == single


def test_batch_norm_trains(train):
    loaded, losses = train(epochs=2, norm="batch")
    assert np.isfinite(losses).all()
    layers = [layer for layer in loaded.network_def.modules() if isinstance(layer, torch.nn.BatchNorm2d)]
    assert layers
    assert all(layer.num_batches_tracked == len(losses) for layer in layers)


def test_tensorboard_shows_loss_learning_rate_and_metrics(train, tmp_path):
    _, losses = train(epochs=2)
    curves = {}
    for path in (tmp_path / "eval").glob("events.out.tfevents*"):
        events = EventAccumulator(str(path)).Reload()
        curves |= {tag: [event.value for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
    assert curves["train_loss"] == pytest.approx(losses)
    assert curves["learning_rate"] == pytest.approx([0.002] * 2 + [0.002 * 0.5**0.9] * 2)
    assert {"val_iou", "val_iou_lesion", "val_iou_recall_lesion", "val_iou_precision_lesion"} < set(curves)
    assert len(curves["val_iou"]) == 2


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


def test_a_finished_run_that_is_resumed_stays_as_it_is(train, tmp_path):
    train(epochs=2)
    models = tmp_path / "models"
    before = torch.load(models / "checkpoint_epoch=2.pt", weights_only=True)
    loaded, losses = train(epochs=2, resume_from=str(models / "checkpoint_epoch=2.pt"))
    assert losses == []
    assert equal(loaded.network_def.state_dict(), before["network"])


def test_a_run_resumed_into_another_folder_saves_its_own_best_model(train, tmp_path, caplog):
    train(epochs=1)
    (tmp_path / "models").rename(tmp_path / "first")
    with caplog.at_level(logging.WARNING):
        train(epochs=2, resume_from=str(tmp_path / "first" / "checkpoint_epoch=1.pt"))
    assert "the best model of the resumed run, model.pt, is not in" in caplog.text
    assert (tmp_path / "models" / "model.pt").is_file()


def test_warm_up_uses_cross_entropy_first(train):
    _, cross_entropy = train("cross_entropy", epochs=2)
    _, margin = train("margin", epochs=2)
    loaded, both = train("margin", epochs=2, warmup_epochs=1)
    steps = len(both) // 2
    assert both[:steps] == cross_entropy[:steps]
    assert both[steps:] != cross_entropy[steps:]
    assert both[0] != margin[0]
    loss = loaded.trainer.loss_function
    assert (type(loss.first).__name__, type(loss.then).__name__) == ("DiceCELoss", "MarginCalibrationLoss")


def test_early_stopping(train):
    """With a learning rate of 0 no validation is better than the first."""
    loaded, _ = train(epochs=9, early_stop_patience=2, learning_rate=0.0)
    assert loaded.trainer.state.epoch == 3
    assert loaded.trainer.should_terminate


@pytest.mark.parametrize("configs", [("train",), ("train", "evaluate")])
def test_a_misspelt_flag_stops_the_run(workflow, configs):
    """MONAI takes `--epochz 3` for a new key and trains 100 epochs."""
    for flag, meant in {"epochz": "epochs", "tau": "loss#tau", "train#save_intervall": "train#save_interval"}.items():
        with pytest.raises(RuntimeError) as raised:
            workflow(configs, "train", **{flag: 3})
        assert f"unknown key '{flag}' (did you mean '{meant}'?)" in str(raised.value.__cause__)


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
    mlflow = pytest.importorskip("mlflow", reason="pip install mlflow: with what it needs half a gigabyte")
    loaded = workflow(("train",), "train", dataset_dir=str(data), epochs=2, tracking="mlflow", **FAST)
    loaded.run()
    client = mlflow.tracking.MlflowClient(f"sqlite:///{tmp_path}/eval/mlruns.db")
    (run,) = client.search_runs([client.get_experiment_by_name("monai_experiment").experiment_id])
    assert {"train_loss", "lr_group_0", "val_iou", "val_iou_lesion", "val_iou_recall_lesion"} <= set(run.data.metrics)
    history = client.get_metric_history(run.info.run_id, "val_iou")
    assert len(history) == 2
    assert history[-1].value == pytest.approx(loaded.evaluator.state.metrics["val_iou"])
    assert len(client.get_metric_history(run.info.run_id, "train_loss")) == 4
    assert len(list((tmp_path / "eval").glob("config_*.json"))) == 1, "what was run"
