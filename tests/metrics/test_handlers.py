"""DatasetIoUHandler where it will be used: in MONAI's engines, from a bundle's config, with the handlers that read it."""

from __future__ import annotations

import csv
import logging
import warnings

import numpy as np
import pytest
import torch
from ignite.engine import Engine
from monai.bundle import ConfigParser
from monai.data import DataLoader, Dataset
from monai.engines import SupervisedEvaluator, SupervisedTrainer
from monai.handlers import CheckpointSaver, MetricsSaver, StatsHandler, ValidationHandler, from_engine
from monai.transforms import AsDiscreted, Compose
from torch import nn

from monai_margincal.metrics import DatasetIoU, DatasetIoUHandler

pytestmark = pytest.mark.filterwarnings("ignore:Mean of empty slice:RuntimeWarning")
NAMES = ["background", "left", "right"]


def data(images: int = 5):
    g = torch.Generator().manual_seed(0)
    for i in range(images):
        label = torch.randint(0, 3, (1, 6, 6), generator=g)
        label[label == 2] = 2 if i % 2 else 0
        yield {"image": label.float() + 0.3 * torch.randn(label.shape, generator=g), "label": label}


class Threshold(nn.Module):
    """A segmentation of the grey values 0, 1, 2 with a bias to learn."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.tensor(0.4))

    def forward(self, x):
        return torch.cat([-((x + self.bias - k) ** 2) for k in range(3)], dim=1)


def postprocessing(one_hot: bool):
    classes = 3 if one_hot else None
    return Compose(
        [AsDiscreted(keys="pred", argmax=True, to_onehot=classes), AsDiscreted(keys="label", to_onehot=classes)]
    )


def evaluator(handler: DatasetIoUHandler, one_hot=True, **options) -> SupervisedEvaluator:
    return SupervisedEvaluator(
        device=torch.device("cpu"),
        val_data_loader=DataLoader(Dataset(list(data())), batch_size=2),
        network=Threshold(),
        postprocessing=postprocessing(one_hot),
        key_val_metric={"val_mean_iou": handler},
        **options,
    )


def handler(**options) -> DatasetIoUHandler:
    return DatasetIoUHandler(num_classes=3, output_transform=from_engine(["pred", "label"]), **options)


def expected() -> DatasetIoU:
    metric = DatasetIoU(3)
    for item in data():
        metric([Threshold()(item["image"][None])[0].argmax(0, keepdim=True)], [item["label"]])
    return metric


@pytest.mark.parametrize("one_hot", [True, False])
def test_evaluator_reports_the_metric_of_the_whole_set(one_hot):
    engine = evaluator(handler(), one_hot)
    for _ in range(2):  # a second epoch starts from nothing
        engine.run()
        assert engine.state.metrics == {"val_mean_iou": pytest.approx(expected().aggregate().item(), abs=1e-15)}
    assert isinstance(engine.state.metrics["val_mean_iou"], float)
    assert engine.state.best_metric == engine.state.metrics["val_mean_iou"]


def test_numbers_per_class_stand_beside_it():
    engine = evaluator(handler(class_names=NAMES, per_class=["iou", "recall", "precision", "images"]))
    engine.run()
    truth = expected()
    found = engine.state.metrics
    wanted = {"val_mean_iou": truth.aggregate()}
    for k in (1, 2):
        wanted[f"val_mean_iou_{NAMES[k]}"] = truth.per_class[k]
        wanted[f"val_mean_iou_recall_{NAMES[k]}"] = truth.recall[k]
        wanted[f"val_mean_iou_precision_{NAMES[k]}"] = truth.precision[k]
        wanted[f"val_mean_iou_images_{NAMES[k]}"] = truth.image_counts[k]
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        assert found[name] == pytest.approx(value.item(), abs=1e-15), name
    assert found["val_mean_iou_images_right"] <= found["val_mean_iou_images_left"] == 5


def test_a_single_word_and_default_names():
    engine = evaluator(handler(per_class="iou", include_background=True))
    engine.run()
    assert list(engine.state.metrics) == ["val_mean_iou", *(f"val_mean_iou_class{k}" for k in range(3))]


def test_metrics_saver_writes_all_of_it(tmp_path):
    engine = evaluator(
        handler(class_names=NAMES, per_class=["iou", "recall"]),
        val_handlers=[MetricsSaver(str(tmp_path), metrics="*", metric_details="*", summary_ops=["mean", "notnans"])],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # MONAI's means over a column without a number
        engine.run()
    truth = expected()
    rows = dict(csv.reader((tmp_path / "metrics.csv").open()))
    assert float(rows["val_mean_iou"]) == pytest.approx(truth.aggregate().item())
    assert float(rows["val_mean_iou_right"]) == pytest.approx(truth.per_class[2].item())
    assert float(rows["val_mean_iou_recall_left"]) == pytest.approx(truth.recall[1].item())

    # per image: columns stand at their class id, background is not averaged in
    header, *cases = csv.reader((tmp_path / "val_mean_iou_raw.csv").open())
    assert header == ["filename", "class0", "class1", "class2", "mean"]
    table = np.array([[float(v) for v in case[1:]] for case in cases])
    np.testing.assert_allclose(table[:, :3], truth.get_buffer(), atol=5e-5)
    np.testing.assert_allclose(table[:, 3], truth.get_buffer()[:, 1:].nanmean(1), atol=5e-5)
    summary = {row[0]: row[1:] for row in csv.reader((tmp_path / "val_mean_iou_summary.csv").open())}
    assert float(summary["class2"][1]) == truth.image_counts[2]


def test_no_details_on_request():
    engine = evaluator(handler(save_details=False))
    engine.run()
    assert "val_mean_iou" not in engine.state.metric_details


def test_stats_handler_logs_every_number():
    lines = []
    stats = StatsHandler(name="metrics_test", output_transform=lambda output: None)
    engine = evaluator(handler(class_names=NAMES, per_class="recall"), val_handlers=[stats])
    logger = logging.getLogger("metrics_test")
    logger.setLevel(logging.INFO)
    logger.addHandler(listener := logging.Handler())
    listener.emit = lambda record: lines.append(record.getMessage())
    engine.run()
    assert "val_mean_iou_recall_right: " in "".join(lines)


def test_trainer_validates_and_keeps_the_best_checkpoint(tmp_path):
    network = Threshold()
    validation = SupervisedEvaluator(
        device=torch.device("cpu"),
        val_data_loader=DataLoader(Dataset(list(data())), batch_size=2),
        network=network,
        postprocessing=postprocessing(True),
        key_val_metric={"val_mean_iou": handler()},
        val_handlers=[
            CheckpointSaver(str(tmp_path), {"model": network}, save_key_metric=True, key_metric_filename="model.pt")
        ],
    )
    trainer = SupervisedTrainer(
        device=torch.device("cpu"),
        max_epochs=4,
        train_data_loader=DataLoader(Dataset(list(data())), batch_size=5),
        network=network,
        optimizer=torch.optim.SGD(network.parameters(), lr=0.2),
        loss_function=lambda p, t: nn.functional.cross_entropy(p, t[:, 0].long()),
        postprocessing=postprocessing(True),
        key_train_metric={"train_mean_iou": handler(per_class=["iou"], class_names=NAMES)},
        train_handlers=[ValidationHandler(interval=1, validator=validation, epoch_level=True)],
    )
    trainer.run()
    assert 0 < trainer.state.metrics["train_mean_iou"] <= 1
    assert "train_mean_iou_left" in trainer.state.metrics
    best = Threshold()
    best.load_state_dict(torch.load(tmp_path / "model.pt", weights_only=True))
    check = evaluator(handler())
    check.network = best
    check.run()
    assert check.state.metrics["val_mean_iou"] == pytest.approx(validation.state.best_metric)
    assert validation.state.best_metric > evaluator_score_of_an_untrained_network()


def evaluator_score_of_an_untrained_network() -> float:
    engine = evaluator(handler())
    engine.run()
    return engine.state.metrics["val_mean_iou"]


def test_from_a_bundle_config():
    parser = ConfigParser(
        {
            "imports": ["$import monai"],
            "key_metric": {
                "val_mean_iou": {
                    "_target_": "monai_margincal.metrics.DatasetIoUHandler",
                    "num_classes": 3,
                    "ignore_index": 255,
                    "absent": "exclude",
                    "class_names": NAMES,
                    "per_class": ["iou", "recall"],
                    "output_transform": "$monai.handlers.from_engine(['pred', 'label'])",
                }
            },
        }
    )
    metric = parser.get_parsed_content("key_metric")["val_mean_iou"]
    assert metric.metric_fn.absent == "exclude"
    engine = evaluator(metric)
    engine.run()
    assert engine.state.metrics["val_mean_iou_recall_right"] == pytest.approx(expected().recall[2].item())


def healthy(key: DatasetIoUHandler, **options) -> SupervisedEvaluator:
    """An evaluator whose one image holds background only, and is predicted so."""
    image = {"image": torch.zeros(1, 4, 4) - 0.4, "label": torch.zeros(1, 4, 4)}
    return SupervisedEvaluator(
        device=torch.device("cpu"),
        val_data_loader=DataLoader(Dataset([image])),
        network=Threshold(),
        postprocessing=postprocessing(False),
        key_val_metric={"val_mean_iou": key},
        **options,
    )


def test_a_set_without_any_class():
    """MONAI keeps a NaN of the first epoch as the best value for ever, as nothing compares greater: no best model then."""
    engine = healthy(handler())
    engine.run()
    assert engine.state.metrics["val_mean_iou"] == 1.0
    with pytest.raises(ValueError, match=r"val_mean_iou is undefined.*classes \(1, 2\).*absent='one'"):
        healthy(handler(absent="exclude")).run()


def test_a_set_without_any_class_beside_another_key_metric():
    engine = healthy(handler(), additional_metrics={"val_mean_iou_present": handler(absent="exclude")})
    engine.run()
    assert engine.state.best_metric == 1.0
    assert np.isnan(engine.state.metrics["val_mean_iou_present"])


def test_wrong_labels_stop_the_engine():
    engine = Engine(lambda engine, batch: batch)
    DatasetIoUHandler(2, output_transform=from_engine(["pred", "label"])).attach(engine, "iou")
    with pytest.raises(ValueError, match=r"y: found the label value\(s\) 255, expected class ids \[0, 1\]"):
        engine.run([{"pred": torch.zeros(1, 1, 2), "label": torch.full((1, 1, 2), 255)}])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"class_names": ["background", "lesion"]},
            r"class_names must be 3 different names.*found 2: \['background', 'lesion'\]",
        ),
        ({"class_names": ["a", "b", "b"]}, r"3 different names"),
        (
            {"per_class": ["hausdorff"]},
            r"per_class may hold \('iou', 'dice', 'recall', 'precision', 'images'\), found \['hausdorff'\]",
        ),
        ({"absent": "nan"}, r"absent must be one of"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        handler(**options)
