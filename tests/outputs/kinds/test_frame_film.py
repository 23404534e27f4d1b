"""The film: every frame, in order, for as long as it should be seen, read back by another library."""

from __future__ import annotations

import imageio.v3 as iio
import numpy as np
import pytest
import torch
from monai.data import MetaTensor
from PIL import Image

from monai_margincal.outputs import Outputs, SaveImageOutputsd

COLOURS = [(200, 30, 30), (30, 200, 30), (30, 30, 200), (200, 200, 200), (20, 20, 20)]


def frames(folder, size=(80, 60)):
    """Frames of one colour each, and masks with a square that moves to the right."""
    folder.mkdir()
    for index, colour in enumerate(COLOURS):
        path = folder / f"f{index}.png"
        Image.new("RGB", size, colour).save(path)
        mask = torch.zeros(1, *size, dtype=torch.uint8)
        mask[0, 10 * index : 10 * index + 10, 40:50] = 1
        yield {"pred": MetaTensor(mask, meta={"filename_or_obj": str(path)})}


def saver(folder, **options):
    return SaveImageOutputsd("pred", Outputs("frame_film", folder, class_names=["nothing", "tool"], frame_film=options))


def test_every_frame_is_there_in_order(tmp_path):
    save = saver(tmp_path / "out")
    for number, item in enumerate(frames(tmp_path / "frames"), 1):
        save(item)
        film = iio.imread(tmp_path / "out" / "film.gif")  # can be watched after every frame
        assert film.shape[-3:] == (60, 80, 3)
        assert (1 if film.ndim == 3 else len(film)) == number
    for index, colour in enumerate(COLOURS):
        assert np.abs(film[index, 55, 70].astype(int) - colour).max() <= 8
        orange = (np.array(colour) + (0xE6, 0x9F, 0x00)) / 2
        assert np.abs(film[index, 45, 10 * index + 5] - orange).max() <= 8
        assert np.abs(film[index, 45, 10 * index + 15].astype(int) - colour).max() <= 8
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["film.gif"]


@pytest.mark.parametrize(("fps", "expected"), [(25, [40, 40, 40, 40, 40]), (2, [500] * 5), (30, [30, 40, 30, 30, 40])])
def test_the_film_lasts_as_long_as_the_frames(tmp_path, fps, expected):
    save = saver(tmp_path / "out", fps=fps)
    for item in frames(tmp_path / "frames"):
        save(item)
    with Image.open(tmp_path / "out" / "film.gif") as film:
        found = []
        for index in range(film.n_frames):
            film.seek(index)
            found.append(film.info["duration"])
    assert sum(found) == pytest.approx(5000 / fps, abs=10)
    assert found == expected


def test_a_second_run_begins_a_new_film_and_large_frames_are_made_smaller(tmp_path):
    for run in range(2):
        save = saver(tmp_path / "out", width=40)
        for item in list(frames(tmp_path / f"frames{run}"))[: 3 - run]:
            save(item)
    assert iio.imread(tmp_path / "out" / "film.gif").shape == (2, 30, 40, 3)


def test_what_makes_no_film_is_named(tmp_path):
    with pytest.raises(ValueError, match="fps: found 0, expected more than 0 and at most 50"):
        Outputs("frame_film", tmp_path, frame_film={"fps": 0})
    with pytest.raises(ValueError, match="width: found 0, expected 1 or more"):
        Outputs("frame_film", tmp_path, frame_film={"width": 0})
    save = saver(tmp_path / "out")
    save(next(frames(tmp_path / "a")))
    with pytest.raises(ValueError, match=r"f0\.png: found a frame of 60 x 80 pixels in a film of 80 x 60"):
        save(next(frames(tmp_path / "b", size=(60, 80))))
