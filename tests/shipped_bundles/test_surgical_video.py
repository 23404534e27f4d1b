"""The instrument bundle on videos, as a user runs it: masks, a film, what becomes of damaged frames."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest
import torch
from PIL import Image
from video_files import TIMES, damage, moving_frames, times_in, write_video

from monai_margincal.networks import COPLENet

BUNDLE = Path(__file__).resolve().parents[2] / "bundles" / "surgical_instrument_coplenet"
FEATURES = [8, 16, 32, 64, 128]


@pytest.fixture
def weights(tmp_path):
    torch.manual_seed(0)
    path = tmp_path / "model.pt"
    torch.save(COPLENet(in_channels=3, features=FEATURES, norm="group").state_dict(), path)
    return path


@pytest.fixture
def clip(tmp_path):
    (tmp_path / "videos").mkdir()
    return write_video(tmp_path / "videos" / "clip.mp4", moving_frames(12))


def test_masks_and_film_of_a_video_are_those_of_its_frames(command, weights, clip, tmp_path):
    flags = {"bundle": BUNDLE, "checkpoint": weights, "features": FEATURES, "roi_size": [0, 0]}
    command(
        tmp_path, ("inference",), **flags, dataset_dir=clip.parent, image_pattern="{case}.mp4", num_workers=2,
        outputs="frame_mask,frame_film",
    )  # fmt: skip
    names = [f"{number:06d}_mask.png" for number in range(12)]
    assert sorted(path.name for path in (tmp_path / "eval" / "clip.mp4").iterdir()) == names
    film = tmp_path / "eval" / "clip_film.mp4"
    assert times_in(film) == pytest.approx([time / 1000 for time in TIMES])
    assert next(iio.imiter(film, plugin="pyav")).shape == (96, 128, 3)
    # the same frames as pictures
    (tmp_path / "frames").mkdir()
    for number, frame in enumerate(iio.imiter(clip, plugin="pyav")):
        Image.fromarray(frame).save(tmp_path / "frames" / f"{number:06d}.png")
    command(
        tmp_path, ("inference",), **flags, dataset_dir=tmp_path / "frames", image_pattern="{case}.png", num_workers=0,
        output_dir="of_frames",
    )  # fmt: skip
    masks = [np.asarray(Image.open(tmp_path / "eval" / "clip.mp4" / name)) for name in names]
    for name, mask in zip(names, masks, strict=True):
        assert (mask == np.asarray(Image.open(tmp_path / "of_frames" / name))).all()
    assert len({mask.tobytes() for mask in masks}) == 12, "one answer for all frames would prove nothing"


def test_damaged_frames_are_named_and_skipped_only_on_request(command, weights, clip, tmp_path):
    path = damage(write_video(clip, moving_frames(12), bf="0"), clip.parent / "broken.mp4", 6)
    clip.unlink()
    flags = {"bundle": BUNDLE, "checkpoint": weights, "features": FEATURES, "roi_size": [0, 0]}
    flags |= {"dataset_dir": clip.parent, "image_pattern": "{case}.mp4", "outputs": "frame_mask,frame_film"}
    run = command(tmp_path, ("inference",), expect=1, **flags)
    assert f"{path}/000006.png: frame 6 of the video, at 0.310 s: found data that cannot be decoded" in run.output
    assert (
        f"2 of 12 scans failed (reasons in the log): {path}/000006.png, {path}/000007.png"
        in run.output.splitlines()[-1]
    )
    run = command(tmp_path, ("inference",), **flags, skip_damaged="true", output_dir="skipped")
    assert f"skipped {path}/000006.png: frame 6 of the video, at 0.310 s: found data" in run.output
    assert "skipped 2 of 12 scans" in run.output
    for folder in ("eval", "skipped"):
        shown = [time / 1000 for number, time in enumerate(TIMES) if number not in (6, 7)]
        assert times_in(tmp_path / folder / "broken_film.mp4") == pytest.approx(shown)
        assert len(list((tmp_path / folder / "broken.mp4").iterdir())) == 10


def test_the_short_command_takes_a_video(weights, clip, tmp_path):
    words = ["segment", str(clip), "-o", "results", "--bundle", BUNDLE.name, "--checkpoint", str(weights)]
    words += ["--outputs", "frame_film", "--set", f"features={FEATURES}", "--set", "roi_size=[0,0]"]
    done = subprocess.run(
        [sys.executable, "-m", "monai_margincal", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["clip_film.mp4"]
