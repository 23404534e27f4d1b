"""The loss among MONAI's: names of arguments, deep supervision, bundle configs, MetaTensors."""

from __future__ import annotations

import inspect
import json
import time
from pathlib import Path

import pytest
import torch
from losses.problems import logits_and_labels
from monai.bundle import ConfigParser
from monai.data import MetaTensor
from monai.losses import DeepSupervisionLoss, DiceCELoss, DiceLoss, TverskyLoss

import monai_margincal
from monai_margincal import ClassCounts, MarginCalibrationLoss
from monai_margincal.losses import iou_calibrated_margin
from monai_margincal.ops import margin_calibration, margin_overlap

BUNDLES = Path(__file__).parents[2] / "bundles"


def test_argument_names():
    """Project-MONAI/MONAI/issues/7065: one name for one thing across losses."""
    ours = {}
    for loss in (
        MarginCalibrationLoss,
        monai_margincal.MarginCalibrationDiceLoss,
        monai_margincal.MarginCalibrationTverskyLoss,
        monai_margincal.LovaszSoftmaxLoss,
    ):
        ours[loss.__name__] = inspect.signature(loss.__init__).parameters
        assert list(inspect.signature(loss.forward).parameters)[:3] == ["self", "input", "target"]
    margin = ours["MarginCalibrationLoss"]
    assert list(margin)[1:13] == [
        "include_background",
        "to_onehot_y",
        "class_counts",
        "margins",
        "tau",
        "upsilon",
        "normalization",
        "positive_weight",
        "negative_weight",
        "base",
        "reduction",
        "ignore_index",
    ]
    monai_names = {
        n: p for loss in (DiceLoss, TverskyLoss, DiceCELoss) for n, p in inspect.signature(loss).parameters.items()
    }
    shared = {"include_background", "to_onehot_y", "reduction", "ignore_index"}
    for name in ("MarginCalibrationDiceLoss", "MarginCalibrationTverskyLoss"):
        assert set(margin) - {"self"} <= set(ours[name])
        own = set(ours[name]) - set(margin) - {"lambda_margin", "lambda_dice", "lambda_tversky"}
        assert own <= set(monai_names)
    for name in shared:
        for parameters in (margin, ours["MarginCalibrationDiceLoss"]):
            if name in monai_names:
                assert parameters[name].default == monai_names[name].default


def test_every_form_of_the_loss_has_the_same_base():
    """The scale of cross-entropy, unless someone asks for the printed equation."""
    for loss in (
        MarginCalibrationLoss,
        monai_margincal.MarginCalibrationDiceLoss,
        monai_margincal.MarginCalibrationTverskyLoss,
        monai_margincal.calibrated_log_loss,
    ):
        assert inspect.signature(loss).parameters["base"].default == "e"
    for function in (margin_calibration, margin_overlap, iou_calibrated_margin):
        assert inspect.signature(function).parameters["base_e"].default is True
    for loss in (MarginCalibrationLoss, monai_margincal.MarginCalibrationTverskyLoss):
        assert "base=e" in repr(loss(margins=0.5))
    for file in sorted(BUNDLES.glob("*/configs/**/*.json")):
        settings = json.loads(file.read_text(encoding="utf-8"))
        loss = settings.get("loss", {})
        if str(loss.get("_target_")).startswith("monai_margincal.losses.Margin"):
            assert loss.get("base", "e") == "e", file


def test_deep_supervision():
    loss = DeepSupervisionLoss(MarginCalibrationLoss(to_onehot_y=True, class_counts=[90, 9, 1]), weights=[1.0, 0.5])
    labels = torch.randint(0, 3, (2, 1, 8, 8)).float()
    heads = [torch.randn(2, 3, 8, 8, requires_grad=True), torch.randn(2, 3, 4, 4, requires_grad=True)]
    loss(heads, labels).backward()
    assert all((head.grad.abs().sum() > 0) for head in heads)


@pytest.mark.parametrize(
    "dotted", ["monai_margincal.MarginCalibrationLoss", "monai_margincal.losses.MarginCalibrationLoss"]
)
def test_from_a_bundle_config(dotted, tmp_path):
    path = tmp_path / "counts.json"
    ClassCounts([980, 20], names=["background", "lesion"]).to_json(path)
    parser = ConfigParser(
        {
            "counts": str(path),
            "loss": {"_target_": dotted, "class_counts": "@counts", "to_onehot_y": True, "ignore_index": 255},
        }
    )
    loss = parser.get_parsed_content("loss")
    assert isinstance(loss, MarginCalibrationLoss)
    assert loss.class_names == ("background", "lesion")


def test_meta_tensors_give_a_plain_tensor():
    """Project-MONAI/tutorials/issues/814, pull/786."""
    logits, labels = logits_and_labels(1, 3, 4, 4)
    value = MarginCalibrationLoss(margins=0.0)(MetaTensor(logits), MetaTensor(labels))
    assert type(value) is torch.Tensor
    value.backward()
    assert type(logits.grad) is torch.Tensor
    assert torch.equal(value, MarginCalibrationLoss(margins=0.0)(logits, labels))


@pytest.mark.slow
def test_meta_tensors_cost_nothing():
    logits, labels = logits_and_labels(2, 4, 64, 64, 32)
    loss = MarginCalibrationLoss(margins=0.0)
    wrapped = MetaTensor(logits.detach()).requires_grad_(), MetaTensor(labels)

    def seconds(x, y):
        start = time.perf_counter()
        loss(x, y).backward()
        return time.perf_counter() - start

    slow, fast = [], []
    for _ in range(15):  # side by side, so that a busy machine slows both
        slow.append(seconds(*wrapped))
        fast.append(seconds(logits, labels))
    assert min(slow) <= 1.05 * min(fast) + 5e-4  # half a millisecond for the clock
