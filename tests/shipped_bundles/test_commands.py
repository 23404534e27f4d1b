"""Train, evaluate, infer: the commands of the bundle's README, each in a folder that is not the bundle's."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import nibabel
import numpy as np
import pytest
import SimpleITK
import torch
from metrics_rows import last_metrics

from monai_margincal.networks import COPLENet
from monai_margincal.samples import sample_dir

SAMPLES = Path(sample_dir("lung_ct"))
TRAINING = {"epochs": 2, "patch_size": [64, 64], "slices_per_volume": 2, "val_interval": 2, "learning_rate": 0.001}


@pytest.fixture(scope="module")
def trained(command, tmp_path_factory):
    return command(tmp_path_factory.mktemp("elsewhere"), ("train",), **TRAINING)


@pytest.fixture(scope="module")
def evaluated(command, trained):
    return command(trained.cwd, ("train", "evaluate"))


@pytest.fixture(scope="module")
def inferred(command, trained):
    return command(trained.cwd, ("inference",), output_dir="masks")


def test_training_leaves_a_plain_state_dict(trained):
    """Project-MONAI/MONAI#8355, #5052, Project-MONAI/MONAILabel#902: every client reads that; nothing but tensors is loaded."""
    weights = torch.load(trained.cwd / "models" / "model.pt", weights_only=True)
    network = COPLENet(features=(8, 16, 32, 64, 128), norm="group")
    network.load_state_dict(weights, strict=True)


def test_training_leaves_the_counts_that_gave_the_margins(trained):
    """wasserth/TotalSegmentator#173, #468, #94, #115: the names of the config are those of the counts."""
    counts = json.loads((trained.cwd / "eval" / "class_counts.json").read_text())
    label = np.asarray(nibabel.load(SAMPLES / "labels" / "lung2.nii.gz").dataobj)
    assert counts["counts"] == np.bincount(label.ravel()).tolist() == [860_092, 24_644]
    assert list(counts["cases"]) == ["lung2"]
    assert counts["names"] == ["background", "lesion"]
    assert list((trained.cwd / "eval" / "class_counts").iterdir()), "the counts of single files are kept"


def test_training_follows_the_poly_schedule(trained):
    rates = [float(rate) for rate in re.findall(r"Current learning rate: (\S+)", trained.output)]
    assert rates == pytest.approx([0.001 * 0.5**0.9, 0.0])


def test_training_validates_saves_and_logs(trained):
    assert trained.output.count("train_loss: ") == 2
    metrics = {
        epoch: names for epoch, names in re.findall(r"Epoch\[(\d)\] Metrics -- (.*)", trained.output) if "val_" in names
    }
    assert list(metrics) == ["2"], "val_interval is 2"
    assert {"val_iou:", "val_dice:"} <= set(metrics["2"].split())
    assert [path.name for path in (trained.cwd / "models").glob("checkpoint*")] == ["checkpoint_epoch=2.pt"]
    assert list((trained.cwd / "eval").glob("events.out.tfevents*"))
    assert {path.name for path in trained.cwd.iterdir()} <= {"eval", "models", "masks"}, "nothing is written elsewhere"


def test_training_twice_gives_the_same_bits(command, trained, tmp_path):
    """Model-zoo issues 362 and 717, Project-MONAI/MONAI#5830."""
    again = command(tmp_path, ("train",), **TRAINING)
    first, second = (torch.load(run.cwd / "models" / "model.pt", weights_only=True) for run in (trained, again))
    assert all(torch.equal(first[key], second[key]) for key in first)


def test_training_goes_on_where_it_stopped(command, trained, tmp_path):
    state = trained.cwd / "models" / "checkpoint_epoch=2.pt"
    resumed = command(tmp_path, ("train",), **{**TRAINING, "epochs": 4}, resume_from=state)
    assert re.findall(r"Epoch: (\d)/4", resumed.output) == ["3", "4"]
    rates = [float(rate) for rate in re.findall(r"Current learning rate: (\S+)", resumed.output)]
    assert rates == pytest.approx([0.001 * 0.25**0.9, 0.0])
    before, after = (
        torch.load(path, weights_only=True) for path in (state, tmp_path / "models" / "checkpoint_epoch=4.pt")
    )
    assert after["trainer"]["iteration"] == 2 * before["trainer"]["iteration"]
    steps = [entry["step"].item() for saved in (before, after) for entry in [saved["optimizer"]["state"][0]]]
    assert steps[1] == 2 * steps[0]


def test_training_from_pretrained_weights(command, trained, tmp_path):
    """The paper's recipe: cross-entropy first, then the margin loss from its weights."""
    weights = trained.cwd / "models" / "model.pt"
    started = {
        "checkpoint": weights,
        "epochs": 1,
        "patch_size": [32, 32],
        "learning_rate": 0.0,
    }
    run = command(tmp_path, ("train", "losses/cross_entropy"), load_pretrain="True", **started)
    assert f"Restored all variables from {weights}" in run.output
    before, after = (torch.load(path, weights_only=True) for path in (weights, tmp_path / "models" / "model.pt"))
    assert after.pop("trained_plane").tolist() == [32, 32], "the planes of this run, whatever it started from"
    assert all(torch.equal(before[key], after[key]) for key in after), "a learning rate of 0 changes nothing"


def iou(prediction, truth):
    return (prediction & truth).sum() / (prediction | truth).sum()


def test_evaluation_scores_on_the_original_label_grid(evaluated, inferred):
    """The number of the evaluation is the IoU of the saved mask and the label file, by NumPy."""
    metrics = last_metrics(evaluated.cwd / "eval" / "metrics.csv")
    truth = np.asarray(nibabel.load(SAMPLES / "labels" / "lung1.nii.gz").dataobj) == 1
    mask = np.asarray(nibabel.load(inferred.cwd / "masks" / "images" / "lung1_mask.nii.gz").dataobj) == 1
    assert metrics["val_iou"] == metrics["val_iou_lesion"] == pytest.approx(iou(mask, truth), abs=1e-12)
    dice = 2 * (mask & truth).sum() / (mask.sum() + truth.sum())
    assert metrics["val_dice"] == metrics["val_dice_lesion"] == pytest.approx(dice, abs=1e-12)
    assert metrics["val_iou_recall_lesion"] == pytest.approx((mask & truth).sum() / truth.sum(), abs=1e-12)
    assert metrics["val_iou_images_lesion"] == 1
    cases = (evaluated.cwd / "eval" / "val_iou_raw.csv").read_text().splitlines()
    assert len(cases) == 2
    assert cases[1].startswith(str(SAMPLES / "images" / "lung1.nii.gz"))
    assert mask.any(), "an empty mask would prove nothing"


@pytest.mark.parametrize("case", ["lung1", "lung2"])
def test_masks_have_the_exact_geometry_of_their_scans(inferred, case):
    """Model-zoo pull 482; tutorials issue 433: one channel, uint8, not turned."""
    scan, mask = SAMPLES / "images" / f"{case}.nii.gz", inferred.cwd / "masks" / "images" / f"{case}_mask.nii.gz"
    ours, theirs = nibabel.load(mask), nibabel.load(scan)
    assert ours.shape == theirs.shape
    assert ours.get_data_dtype() == np.uint8
    assert np.abs(ours.affine - theirs.affine).max() < 1e-4
    assert set(np.unique(np.asarray(ours.dataobj))) <= {0, 1}
    ours, theirs = SimpleITK.ReadImage(str(mask)), SimpleITK.ReadImage(str(scan))
    assert ours.GetPixelID() == SimpleITK.sitkUInt8
    assert ours.GetSize() == theirs.GetSize()
    for part in ("GetOrigin", "GetSpacing", "GetDirection"):
        assert np.allclose(getattr(ours, part)(), getattr(theirs, part)(), atol=1e-4), part


def test_a_mask_is_written_once(inferred):
    assert sorted(p.name for p in (inferred.cwd / "masks" / "images").iterdir()) == [
        "lung1_mask.nii.gz",
        "lung2_mask.nii.gz",
    ]


def test_inside_the_bundle_no_root_is_needed(bundle, command, trained, tmp_path):
    """Model-zoo issue 247: the default root is the current folder."""
    copy = shutil.copytree(bundle, tmp_path / "bundle", ignore=shutil.ignore_patterns("eval", "models"))
    (copy / "models").mkdir()
    shutil.copy(trained.cwd / "models" / "model.pt", copy / "models")
    command(
        copy,
        ("inference",),
        bundle_root=".",
        ckpt_dir="$@bundle_root + '/models'",
        output_dir="$@bundle_root + '/eval'",
    )
    assert (copy / "eval" / "images" / "lung1_mask.nii.gz").is_file()


@pytest.fixture(scope="module")
def unpaired(tmp_path_factory):
    data = tmp_path_factory.mktemp("unpaired")
    for kind, names in (("images", ["lung1", "lung2", "lung3"]), ("labels", ["lung1", "lung2"])):
        (data / kind).mkdir()
        for name in names:
            source = SAMPLES / kind / f"{name.replace('3', '1')}.nii.gz"
            (data / kind / f"{name}.nii.gz").symlink_to(source)
    return data


def test_what_is_wrong_is_named_and_the_exit_code_is_not_zero(command, unpaired, tmp_path):
    """Model-zoo pulls 789 and 761: a wrong folder did nothing and exited 0."""
    for configs in (("train",), ("inference",)):
        run = command(tmp_path, configs, expect=1, dataset_dir=tmp_path / "nowhere")
        assert f"FileNotFoundError: data set folder not found: {tmp_path}/nowhere" in run.output
    run = command(tmp_path, ("train",), expect=1, dataset_dir=unpaired)
    assert "no label of the pattern 'labels/{case}.*' for the images images/lung3.nii.gz" in run.output
    run = command(tmp_path, ("inference",), expect=1, dataset_dir=unpaired, image_pattern="imagesTs/{case}.*")
    assert f"no image found: nothing in {unpaired} fits the pattern 'imagesTs/{{case}}.*'" in run.output
    assert not (tmp_path / "models").exists(), "nothing was trained"


def test_missing_weights_are_named(command, tmp_path):
    run = command(tmp_path, ("inference",), expect=1, checkpoint="models/none.pt")
    assert "No such file or directory: 'models/none.pt'" in run.output
    assert not list(tmp_path.rglob("*_mask.nii.gz"))
