"""The instrument bundle: its files, its keys, one frame through its chains, several processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import monai.bundle
import numpy as np
import pytest
import torch
from monai.bundle import ConfigParser
from PIL import Image
from shared import GOLDEN

from monai_margincal.bundle.check import check_bundle
from monai_margincal.networks import COPLENet
from monai_margincal.samples import sample_dir

BUNDLE = Path(__file__).resolve().parents[2] / "bundles" / "surgical_instrument_coplenet"
CONFIGS = BUNDLE / "configs"
SAMPLES = Path(sample_dir("instruments"))
LOSSES = sorted(path.stem for path in (CONFIGS / "losses").iterdir())


@pytest.fixture
def weights(tmp_path):
    torch.manual_seed(0)
    path = tmp_path / "model.pt"
    torch.save(COPLENet(in_channels=3, features=(8, 16, 32, 64, 128), norm="group").state_dict(), path)
    return path


def test_the_check_finds_nothing():
    assert check_bundle(BUNDLE, dataset_dir=SAMPLES) == []


def test_metadata_follow_the_schema(tmp_path):
    (tmp_path / "schema.json").write_bytes((GOLDEN / "meta_schema_20240725.json").read_bytes())
    monai.bundle.verify_metadata(meta_file=str(CONFIGS / "metadata.json"), filepath=str(tmp_path / "schema.json"))


def parsed(**given):
    parser = ConfigParser()
    parser.read_config(str(CONFIGS / "train.json"))
    parser.update({"bundle_root": str(BUNDLE), "device": "cpu", "num_workers": 0, **given})
    return parser


def test_a_training_frame(tmp_path):
    """The patch is of the size asked for, void where the frame ends, normalised, and the label goes along with the image."""
    rows = np.zeros((40, 60, 3), np.uint8)
    rows[10:30, 20:40] = 200
    label = (rows[..., 0] > 0).astype(np.uint8)
    for folder, array in (("images", rows), ("labels", label)):
        (tmp_path / folder).mkdir()
        for name in ("a_001", "b_001"):
            Image.fromarray(array).save(tmp_path / folder / f"{name}.png")
    parser = parsed(dataset_dir=str(tmp_path), patch_size=[64, 64], val_cases="b_001", seed=0)
    parser["train"]["colour_jitter"] = 0.0
    dataset = parser.get_parsed_content("train#dataset")
    dataset.transform.set_random_state(0)
    (item,) = dataset[0]
    image, target = item["image"], item["label"][0]
    assert image.shape == (3, 64, 64)
    assert sorted(target.unique().tolist()) == [0, 1, 255]
    assert (target == 255).sum() == 64 * 64 - 60 * 40
    mean, std = (torch.tensor(parser.get_parsed_content(f"image_{name}")) for name in ("mean", "std"))
    inside = image[:, target == 1] * std[:, None] + mean[:, None]
    assert inside.median().item() == pytest.approx(200 / 255, abs=0.01)


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_leaves_void_pixels_out(loss):
    parser = parsed(class_counts=[900, 100])
    parser.update(json.loads((CONFIGS / "losses" / f"{loss}.json").read_text()))
    function = parser.get_parsed_content("loss")
    torch.manual_seed(0)
    logits, target = torch.randn(1, 2, 8, 8), torch.randint(0, 2, (1, 1, 8, 8)).float()
    target[..., :3] = 255
    changed = logits.clone()
    changed[..., :3] = 50 * torch.randn(1, 2, 8, 3)
    assert function(logits, target) == function(changed, target)
    assert function(logits, target) > 0


@pytest.mark.parametrize("roi_size", [[0, 0], [128, 96]], ids=["whole", "windows"])
def test_masks_and_pictures_of_the_shipped_frames(command, weights, tmp_path, roi_size):
    command(
        tmp_path, ("inference",), bundle=BUNDLE, checkpoint=weights, outputs="frame_mask,frame_overlay", roi_size=roi_size,
        frame_box=[10, 20, 200, 230],
    )  # fmt: skip
    frames = sorted((SAMPLES / "images").iterdir())
    assert len(list((tmp_path / "eval" / "images").iterdir())) == 2 * len(frames)
    found = set()
    for frame in frames:
        mask = np.array(Image.open(tmp_path / "eval" / "images" / f"{frame.stem}_mask.png"))
        assert mask.shape[::-1] == Image.open(frame).size
        found |= set(np.unique(mask[20:230, 10:200]))
        mask[20:230, 10:200] = 0
        assert not mask.any(), "outside of the box is background"
    assert found == {0, 1}


def test_wrong_flags_are_named_in_one_line(command, tmp_path):
    run = command(tmp_path, ("train",), expect=1, bundle=BUNDLE, taks="parts")
    assert run.output.splitlines()[-1].startswith("error: ")
    assert "unknown key 'taks' (did you mean 'task'?)" in run.output.splitlines()[-1]
    run = command(tmp_path, ("train",), expect=1, bundle=BUNDLE, task="part")
    assert run.output.splitlines()[-1] == (
        "error: ValueError: --task: found 'part', expected one of ['binary', 'parts', 'types']"
    )


def test_a_damaged_frame_is_named_and_the_others_are_done(command, weights, tmp_path):
    (tmp_path / "frames").mkdir()
    for name in ("a", "b", "c"):
        frame = (SAMPLES / "images" / "larynx2_0122.png").read_bytes()
        (tmp_path / "frames" / f"{name}.png").write_bytes(frame[: len(frame) // 2] if name == "b" else frame)
    run = command(
        tmp_path, ("inference",), expect=1, bundle=BUNDLE, checkpoint=weights, dataset_dir=tmp_path / "frames",
        image_pattern="{case}.png",
    )  # fmt: skip
    assert sorted(path.name for path in (tmp_path / "eval").iterdir()) == ["a_mask.png", "c_mask.png"]
    assert f"1 of 3 scans failed: {tmp_path}/frames/b.png: " in run.output.splitlines()[-1]


def test_two_processes_score_like_one(weights, tmp_path):
    tables = []
    for processes, names in ((1, ()), (2, ("multi_gpu_evaluate",))):
        files = [str(CONFIGS / f"{name}.json") for name in ("train", "evaluate", *names)]
        start = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"] if processes == 2 else []
        flags = {
            "config_file": files, "bundle_root": BUNDLE, "val_cases": "all", "checkpoint": weights, "output_dir": processes,
            "features": [8, 16, 32, 64, 128], "num_workers": 0, "device": "cpu",
        }  # fmt: skip
        line = [sys.executable, *start, "-m", "monai.bundle", "run"]
        line += [word for key, value in flags.items() for word in (f"--{key}", str(value))]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        done = subprocess.run(
            line, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        tables.append((tmp_path / str(processes) / "scores.csv").read_text())
    assert tables[0] == tables[1]
    assert tables[0].splitlines()[-1].startswith("all,4,")
