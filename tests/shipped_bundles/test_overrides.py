"""Every tunable does something when it is given as one flag."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import monai
import numpy as np
import pytest
import torch

from monai_margincal.counting.class_counts import ClassCounts
from monai_margincal.margins import class_margins
from monai_margincal.samples import sample_dir

BUNDLE = Path(__file__).resolve().parents[2] / "bundles" / "covid19_ct_lesion_coplenet"

#: voxels of background and lesion in the crop that the default split trains on
LUNG2 = [860_092, 24_644]
UPSILON_10 = class_margins(LUNG2, upsilon=10.0).positive.float()


def parsed(*names, **overrides):
    """The config as the command line makes it, nothing instantiated yet."""
    parser = monai.bundle.ConfigParser()
    parser.read_config([str(BUNDLE / "configs" / f"{name}.json") for name in names])
    parser.update({"bundle_root": str(BUNDLE), "features": [8, 16, 32, 64, 128], **overrides})
    parser.parse(True)
    return parser


def step(transforms, name):
    return next(t for t in transforms.flatten().transforms if type(t).__name__ == name)


def lung_crops(p, *ids):
    chains = [p[id].flatten().transforms for id in ids or ("train#preprocessing", "validate#preprocessing")]
    return [t for chain in chains for t in chain if type(t).__name__ == "LungRegionCropd"]


def handler(p, name):
    return next((h for h in p["train#handlers"] if type(h).__name__ == name), None)


def session(p):
    return handler(p, "TrainingSession")


def margin_part(loss):
    return next(m for m in loss.modules() if type(m).__name__ == "MarginCalibrationLoss")


def margins(loss):
    part = margin_part(loss)
    return part.margin_negative.flatten(), part.margin_positive.flatten()


TRAIN = {
    "image_pattern": ("labels/{case}.*", lambda p: "/labels/" in p["datalist"]["training"][0]["image"]),
    "label_pattern": ("images/{case}.*", lambda p: "/images/" in p["datalist"]["training"][0]["label"]),
    "train_cases": ("lung1", lambda p: [i["case"] for i in p["train#dataset"].data] == ["lung1"]),
    "val_cases": ("lung2", lambda p: [i["case"] for i in p["validate#dataset"].data] == ["lung2"]),
    "groups": ("cases.csv", lambda p: [i.get("group") for i in p["datalist"]["validation"]] == ["b"]),
    "group_column": ("side", lambda p: p["datalist"]["training"][0]["group"] == "right", {"groups": "cases.csv"}),
    "group_pattern": ("lung{group}", lambda p: p["datalist"]["training"][0].get("group") == "2"),
    "folds": (2, lambda p: [i["fold"] for i in p["datalist"]["training"]] == [1], {"fold": 0}),
    "fold": (1, lambda p: [i["fold"] for i in p["datalist"]["validation"]] == [1], {"folds": 2, "fold": 0}),
    "datalist#seed": (0, lambda p: p["datalist"]["validation"][0]["case"] == "lung2"),
    "device": ("cpu", lambda p: str(p["train#trainer"].state.device) == "cpu"),
    "amp": (True, lambda p: p["train#trainer"].amp and p["validate#evaluator"].amp),
    "channels_last": ("true", lambda p: p["network"].out_conv.weight.is_contiguous(memory_format=torch.channels_last)),
    "train#trainer#compile": (True, lambda p: hasattr(p["train#trainer"].network, "_orig_mod")),
    "train#global_mean": (True, lambda p: margin_part(p["loss"]).global_mean),
    "epochs": (7, lambda p: p["train#trainer"].state.max_epochs == 7),
    "warmup_epochs": (2, lambda p: p["train#trainer"].loss_function.epochs == 2),
    "early_stop_patience": (5, lambda p: session(p).early_stop_patience == 5),
    "val_interval": (2, lambda p: handler(p, "ValidationHandler").interval == 2),
    "train#save_interval": (3, lambda p: session(p).save_interval == 3),
    "batch_size": (1, lambda p: len(p["train#dataloader"]) == 1 and p["train#dataloader"].batch_size == 1),
    "num_workers": (3, lambda p: p["train#dataloader"].num_workers == p["validate#dataloader"].num_workers == 3),
    "cache_rate": (1.0, lambda p: p["train#dataset"].cache_num == 1),
    "learning_rate": (0.01, lambda p: p["optimizer"].param_groups[0]["lr"] == 0.01),
    "optimizer#weight_decay": (0.1, lambda p: p["optimizer"].param_groups[0]["weight_decay"] == 0.1),
    "lr_scheduler#lr_lambda": ("$lambda epoch: epoch / @epochs", lambda p: p["lr_scheduler"].lr_lambdas[0](25) == 0.25),
    "load_pretrain": (True, lambda p: session(p).pretrained.load_path.endswith("models/model.pt")),
    "checkpoint": ("x.pt", lambda p: session(p).pretrained.load_path == "x.pt", {"load_pretrain": True}),
    "decision": ("d.json", lambda p: session(p).offsets.path.name == "d.json"),
    "resume_from": ("y.pt", lambda p: session(p).resume_from == "y.pt"),
    "grid_tolerance": (None, lambda p: step(p["train#preprocessing"], "CheckSameGridd").tolerance is None),
    "window_level": (40.0, lambda p: step(p["validate#preprocessing"], "ScaleIntensityRanged").scaler.a_min == -710),
    "window_width": (400.0, lambda p: step(p["train#preprocessing"], "ScaleIntensityRanged").scaler.a_max == -450),
    "axcodes": ("RAS", lambda p: step(p["train#preprocessing"], "Orientationd").ornt_transform.axcodes == "RAS"),
    "lung_crop": ("false", lambda p: not lung_crops(p)),
    "lung_margin": (7.0, lambda p: [crop.cropper.margin_mm for crop in lung_crops(p)] == [7.0, 7.0]),
    "patch_size": (
        [32, 48],
        lambda p: p["train#dataset"][0][0]["image"].shape == (1, 32, 48) and session(p).trained_plane == [32, 48],
    ),
    "slices_per_volume": (3, lambda p: len(p["train#dataset"][0]) == 3),
    "train#class_ratios": ([1, 3], lambda p: step(p["train#preprocessing"], "RandCropByLabelClassesd").cropper.ratios == [1, 3]),
    "train#augmentation_prob": (0.25, lambda p: step(p["train#preprocessing"], "RandFlipd").prob == 0.25),
    "num_classes": (3, lambda p: p["network"].out_conv.out_channels == 3),
    "class_names": (["a", "b"], lambda p: p["validate#key_metric"]["val_iou"].class_names == ["a", "b"]),
    "features": ([4, 8, 16, 32, 64], lambda p: p["network"].out_conv.in_channels == 4, {"norm": "batch"}),
    "network_def#dropout": ([0.5] * 5, lambda p: {m.p for m in p["network"].modules() if "Dropout" in type(m).__name__} == {0.5}),
    "norm": ("batch", lambda p: any(isinstance(m, torch.nn.BatchNorm2d) for m in p["network"].modules())),
    "loss#include_background": (False, lambda p: not margin_part(p["loss"]).include_background),
    "loss#tau": (2.0, lambda p: np.isclose(margins(p["loss"])[0].sum(), 2.0)),
    "loss#upsilon": (10.0, lambda p: torch.allclose(margins(p["loss"])[1], UPSILON_10)),
    "loss#normalization": ("counts", lambda p: not np.isclose(margins(p["loss"])[0].sum(), 1.0)),
    "loss#base": (2, lambda p: not margin_part(p["loss"]).base_e),
    "loss#positive_weight": ([1.0, 2.5], lambda p: "2.5" in repr(p["loss"])),
    "loss#negative_weight": (0.125, lambda p: "0.125" in repr(p["loss"])),
    "loss#lambda_margin": (0.5, lambda p: p["loss"].lambda_margin == 0.5),
    "loss#lambda_tversky": (0.5, lambda p: p["loss"].lambda_tversky == 0.5),
    "roi_size": ([64, 32], lambda p: p["validate#inferer"].roi_size == (64, 32)),
    "validate#inferer#sw_batch_size": (2, lambda p: p["validate#inferer"].sw_batch_size == 2),
    "validate#inferer#overlap": (0.5, lambda p: p["validate#inferer"].overlap == 0.5),
    "validate#inferer#device": ("cpu", lambda p: p["validate#inferer"].device == "cpu"),
    "ckpt_dir": ("m", lambda p: session(p).ckpt_dir == "m" and p["checkpoint"] == "m/model.pt"),
}  # fmt: skip


class Content:
    """Parsed content by key."""

    def __init__(self, parser):
        self.parser = parser

    def __getitem__(self, key):
        return self.parser.get_parsed_content(key)


@pytest.mark.parametrize("key", TRAIN)
def test_one_flag(key, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cases.csv").write_text("case,patient,side\nlung1,b,left\nlung2,c,right\n")
    value, holds, *others = TRAIN[key]
    base = {
        "output_dir": str(tmp_path / "eval"),
        "ckpt_dir": str(tmp_path / "models"),
        "num_workers": 0,
        **(others[0] if others else {}),
    }
    assert holds(Content(parsed("train", **{**base, key: value}))), "the flag did nothing"
    default = parsed("train")[key]
    if value != default and not (key == "device" and not torch.cuda.is_available()):
        before = parsed("train", **base)
        # a component that is off by default is None; half of what says a fold is refused
        with contextlib.suppress(AttributeError, RuntimeError):
            assert not holds(Content(before)), "the check holds without the flag, too"


#: file below configs/losses, None for the loss of train.json -> class
LOSSES = {
    None: "MarginCalibrationTverskyLoss",
    "margin": "MarginCalibrationLoss",
    "margin_dice": "MarginCalibrationDiceLoss",
    "cross_entropy": "DiceCELoss",
    "dice_cross_entropy": "DiceCELoss",
}


def test_every_file_of_a_loss_is_tried_here():
    assert {path.stem for path in (BUNDLE / "configs" / "losses").iterdir()} == set(LOSSES) - {None}


@pytest.mark.parametrize("several", [False, True], ids=["alone", "with multi_gpu_train"])
@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_trains(tmp_path, name, several):
    files = ["train", *([f"losses/{name}"] if name else []), *(["multi_gpu_train"] if several else [])]
    parser = parsed(*files, output_dir=str(tmp_path), device="cpu")
    loss = parser.get_parsed_content("loss")
    assert type(loss).__name__ == LOSSES[name]
    if "margin" in (name or "margin"):
        assert margin_part(loss).global_mean is several
    logits = torch.zeros(2, 2, 8, 8, requires_grad=True)
    label = torch.zeros(2, 1, 8, 8)
    label[0, :, 2:4, 2:4] = 1
    value = parser.get_parsed_content("train#trainer#loss_function")(logits, label)
    value.backward()
    assert torch.isfinite(value)
    assert logits.grad.abs().sum() > 0
    if name == "cross_entropy":
        assert torch.isclose(value, torch.tensor(np.log(2.0), dtype=value.dtype))


def test_a_name_is_no_loss(tmp_path):
    with pytest.raises(RuntimeError) as raised:
        parsed("train", loss="margin", output_dir=str(tmp_path)).get_parsed_content("train#trainer#loss_function")
    assert "then: found 'margin', expected a loss" in str(raised.value.__cause__)


def test_class_counts_from_a_file_from_numbers_and_by_default(tmp_path):
    """The counts of the training labels give the margins; a file given in one flag takes their place."""
    counts = ClassCounts([990_000, 10_000])
    counts.to_json(tmp_path / "mine.json")

    def loss(**flags):
        return parsed("train", **flags).get_parsed_content("loss")

    by_file, by_numbers = loss(class_counts=str(tmp_path / "mine.json")), loss(class_counts=[990_000, 10_000])
    counted, given = loss(output_dir=str(tmp_path)), loss(class_counts=LUNG2)
    assert all(map(torch.equal, margins(by_file), margins(by_numbers)))
    assert all(map(torch.equal, margins(counted), margins(given)))
    assert not torch.equal(margins(counted)[0], margins(by_file)[0])
    with pytest.raises(RuntimeError) as raised:
        loss(class_counts=str(tmp_path / "none.json"))
    assert "none.json" in str(raised.value.__cause__)


@pytest.mark.parametrize(
    ("value", "loads"), [(True, True), (False, False), ("true", True), ("false", False), ("False", False)]
)
def test_load_pretrain_as_text_means_what_it_says(value, loads):
    """The command line makes `--load_pretrain false` the text "false", which is true for Python."""
    pretrained = "train#handlers#0#pretrained"
    assert bool(parsed("train", load_pretrain=value).get_parsed_content(pretrained)) is loads
    with pytest.raises(RuntimeError) as raised:
        parsed("train", load_pretrain="maybe").get_parsed_content(pretrained)
    assert "maybe" in str(raised.value.__cause__)


def test_a_data_list_from_a_json_file(tmp_path):
    """`--train#dataset#data "%list.json#training"`: any section of any data list."""
    items = [
        {
            "image": f"{sample_dir('lung_ct')}/images/lung1.nii.gz",
            "label": f"{sample_dir('lung_ct')}/labels/lung1.nii.gz",
        }
    ]
    (tmp_path / "list.json").write_text(json.dumps({"training": items, "validation": items}))
    parser = parsed(
        "train",
        dataset_dir="/not/used",
        output_dir=str(tmp_path),
        num_workers=0,
        **{
            "train#dataset#data": f"%{tmp_path}/list.json#training",
            "validate#dataset#data": f"%{tmp_path}/list.json#validation",
        },
    )
    assert parser.get_parsed_content("train#dataset").data == items
    assert parser.get_parsed_content("class_counts").counts.tolist() == [883_899, 837]
    assert parser.get_parsed_content("train#dataset")[0][0]["image"].shape == (1, 256, 256)


def test_the_data_lists_of_a_client_take_the_place_of_ours(workflow):
    """monai.fl sets `train#dataset#data` and `validate#dataset#data`; its items have no case name."""
    items = [
        {
            "image": f"{sample_dir('lung_ct')}/images/lung1.nii.gz",
            "label": f"{sample_dir('lung_ct')}/labels/lung1.nii.gz",
        }
    ]
    loaded = workflow(("train",), "train", patch_size=[32, 32])
    loaded.train_dataset_data = items
    loaded.val_dataset_data = items
    loaded.initialize()
    assert loaded.train_dataset_data == items
    (batch,) = loaded.parser.get_parsed_content("train#dataloader")
    assert batch["image"].shape == (4, 1, 32, 32)


def test_every_case_in_both_parts():
    """`--train_cases all --val_cases all`: what the shipped weights were trained and are evaluated on."""
    parser = parsed("train", train_cases="all", val_cases="all")
    for part in ("train", "validate"):
        assert [item["case"] for item in parser.get_parsed_content(f"{part}#dataset").data] == ["lung1", "lung2"]
    evaluation = parsed("train", "evaluate", val_cases="all")
    assert len(evaluation.get_parsed_content("validate#dataset").data) == 2
