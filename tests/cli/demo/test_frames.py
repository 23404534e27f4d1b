"""`margincal demo --bundle surgical_instrument_coplenet`, run for real, and the frames that it runs on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest
from PIL import Image
from shared import SHARED, needs_shared

from monai_margincal import ClassCounts
from monai_margincal.cli.demo.frames_bundle import demo_sequences, label_of, sequence_of
from monai_margincal.samples import sample_dir

PARTS = demo_sequences()
FRAMES = Path(sample_dir("larynx_tools"))


def demo(output, *words):
    command = [sys.executable, "-m", "monai_margincal", "demo", "--bundle", "surgical_instrument_coplenet"]
    command += ["--output", str(output), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def short_run(tmp_path_factory):
    output = tmp_path_factory.mktemp("demo") / "out"
    result = demo(output, "--steps", 1)
    assert result.returncode == 0, result.stderr
    return output, result.stdout


def test_no_sequence_is_in_two_parts():
    sequences = [{sequence_of(frame) for frame in frames} for frames in PARTS.values()]
    assert sum(map(len, sequences)) == len(set.union(*sequences)) == 8
    assert {frame.partition("_")[0] for frame in PARTS["held_out"]} == {"patient1", "patient2"}


@needs_shared
@pytest.mark.parametrize("frame", [frames[3] for frames in PARTS.values()])
def test_the_frames_are_those_of_the_data_set(frame):
    source = SHARED / "data" / "vocalfolds"
    patient, sequence, number = frame.split("_")
    (image,) = (
        path
        for path in (source / "images").glob(f"{patient}_{sequence}_*.png")
        if int(path.stem.split("_")[2]) == int(number)
    )
    whole = np.asarray(Image.open(image).convert("RGB")).astype(int)
    assert np.abs(np.asarray(Image.open(FRAMES / "images" / f"{frame}.jpg")) - whole).mean() < 6
    classes = np.asarray(Image.open(source / "labels" / image.name))
    expected = np.select([classes == 0, classes == 5], [255, 1], 0)
    assert (np.asarray(Image.open(label_of(frame))) == expected).all()


def test_the_frames_are_few_and_their_licence_travels_with_them():
    assert sum(path.stat().st_size for path in FRAMES.rglob("*") if path.is_file()) < 2.1e6
    assert "Creative Commons Attribution 4.0" in (FRAMES / "LICENSE.txt").read_text()


@pytest.mark.slow
def test_the_numbers_are_those_of_the_saved_masks(short_run):
    output, told = short_run
    counts = ClassCounts.from_json(output / "counts.json")
    labels = [np.asarray(Image.open(label_of(frame))) for frame in PARTS["training"]]
    assert counts.counts.tolist() == [sum(int((label == k).sum()) for label in labels) for k in (0, 1)]
    ious = json.loads((output / "margincal_demo.json").read_text())["iou"]
    assert set(ious) == {"patient1_seq2", "patient2_seq6", "all frames"}
    for name, iou in ious.items():
        both = either = 0
        for frame in PARTS["held_out"]:
            if name in ("all frames", sequence_of(frame)):
                mask = np.asarray(Image.open(output / "masks" / "images" / f"{frame}_mask.png"))
                truth = np.asarray(Image.open(label_of(frame)))
                tool, predicted = truth == 1, (mask == 1) & (truth != 255)
                both, either = both + (tool & predicted).sum(), either + (tool | predicted).sum()
        assert iou == pytest.approx(both / either)
        assert f"{iou:.3f}" in told
    assert "4  Segment 39 frames of sequences that took no part in this: patient1_seq2 (17), patient2_seq6 (22)" in told
    assert "the same two patients as in training" in told
    film = list(iio.imiter(output / "masks" / "film.mp4"))
    assert len(film) == 39
    assert film[0].shape == (256, 256, 3)
    assert (output / "overlay.png").stat().st_size > 50_000


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_it_finds_tools_in_sequences_it_has_never_seen(tmp_path):
    assert demo(tmp_path / "out").returncode == 0
    iou = json.loads((tmp_path / "out" / "margincal_demo.json").read_text())["iou"]
    assert iou["all frames"] > 0.5
