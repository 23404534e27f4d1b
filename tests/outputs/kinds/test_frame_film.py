"""The film: every frame, in order, at its time, read back by another library."""

from __future__ import annotations

from fractions import Fraction

import imageio.v3 as iio
import numpy as np
import pytest
import torch
from monai.data import MetaTensor
from PIL import Image
from video_files import TIMES, moving_frames, times_in, write_video

from monai_margincal.formats.video import video_index
from monai_margincal.outputs import Outputs, SaveImageOutputsd
from monai_margincal.outputs.gif_film import GifFilm

COLOURS = [(200, 30, 30), (30, 200, 30), (30, 30, 200), (200, 200, 200), (20, 20, 20)]
NAMES = ["nothing", "tool"]
FORMATS = ("gif", "h264")


def frames(folder, size=(200, 120)):
    """Frames of one colour each, and masks with a square that moves to the right."""
    folder.mkdir()
    for index, colour in enumerate(COLOURS):
        path = folder / f"f{index}.png"
        Image.new("RGB", size, colour).save(path)
        yield item(path, size, index)


def item(path, size, index):
    mask = torch.zeros(1, *size, dtype=torch.uint8)
    mask[0, 10 * index : 10 * index + 10, 40:50] = 1
    return {"pred": MetaTensor(mask, meta={"filename_or_obj": str(path)})}


def outputs(folder, **options):
    return Outputs("frame_film", folder, class_names=NAMES, frame_film=options)


def film_of(items, folder, **options):
    made = outputs(folder, **options)
    save = SaveImageOutputsd("pred", made)
    for one in items:
        save(one)
    made.finish()


@pytest.mark.parametrize("format", FORMATS)
def test_every_frame_is_there_in_order(tmp_path, format):
    film_of(frames(tmp_path / "frames"), tmp_path / "out", format=format)
    ending = {"gif": ".gif", "h264": ".mp4"}[format]
    film = np.stack(list(iio.imiter(tmp_path / "out" / f"film{ending}")))
    assert film.shape == (5, 120, 200, 3)
    for index, colour in enumerate(COLOURS):
        assert np.abs(film[index, 80, 190] - np.array(colour)).max() <= 12
        orange = (np.array(colour) + (0xE6, 0x9F, 0x00)) / 2
        # colours have half the resolution in H.264
        assert np.abs(film[index, 43:47, 10 * index + 3 : 10 * index + 7].mean((0, 1)) - orange).max() <= 12
        assert np.abs(film[index, 45, 10 * index + 18] - np.array(colour)).max() <= 12
    # the legend and the line with the number do not wait for the class to appear
    assert (film[:, 8:14, 8:12].reshape(-1, 3).mean(0) - (0xE6, 0x9F, 0x00) < 20).all()
    assert (film[1:, 98:118] != film[:-1, 98:118]).any()
    assert [path.name for path in (tmp_path / "out").iterdir()] == [f"film{ending}"]


def test_a_gif_can_be_watched_after_every_frame(tmp_path):
    save = SaveImageOutputsd("pred", outputs(tmp_path / "out", format="gif"))
    for number, one in enumerate(frames(tmp_path / "frames"), 1):
        save(one)
        with Image.open(tmp_path / "out" / "film.gif") as film:
            assert getattr(film, "n_frames", 1) == number


def test_a_film_in_h264_appears_when_it_is_complete(tmp_path):
    made = outputs(tmp_path / "out", format="h264")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "film.mp4").write_text("of an earlier run")
    SaveImageOutputsd("pred", made)(next(frames(tmp_path / "frames")))
    assert (tmp_path / "out" / "film.mp4").read_text() == "of an earlier run"
    made.finish()
    made.finish()
    assert iio.imread(tmp_path / "out" / "film.mp4").shape == (1, 120, 200, 3)


@pytest.mark.parametrize(("fps", "expected"), [(25, [40, 40, 40, 40, 40]), (2, [500] * 5), (30, [30, 40, 30, 30, 40])])
def test_the_film_lasts_as_long_as_the_frames(tmp_path, fps, expected):
    film_of(frames(tmp_path / "frames"), tmp_path / "out", format="gif", fps=fps)
    found = gif_durations(tmp_path / "out" / "film.gif")
    assert sum(found) == pytest.approx(5000 / fps, abs=10)
    assert found == expected
    film_of(frames(tmp_path / "again"), tmp_path / "out", format="h264", fps=fps)
    assert times_in(tmp_path / "out" / "film.mp4") == pytest.approx([number / fps for number in range(5)], abs=1e-4)
    assert iio.immeta(tmp_path / "out" / "film.mp4", plugin="pyav")["fps"] == pytest.approx(fps)


def gif_durations(path):
    with Image.open(path) as film:
        found = []
        for index in range(film.n_frames):
            film.seek(index)
            found.append(film.info["duration"])
    return found


@pytest.mark.parametrize("format", FORMATS)
def test_the_frames_of_a_video_keep_their_times(tmp_path, format):
    """Uneven ones, and where a frame is missing the one before it stays."""
    (tmp_path / "data").mkdir()
    clip = write_video(tmp_path / "data" / "clip.mp4", moving_frames(12))
    index = video_index(clip)
    shown = [number for number in range(12) if number != 5]
    items = [item(index.frame_file(number), (128, 96), 0) for number in shown]
    film_of(items, tmp_path / "out", format=format)
    times = [TIMES[number] for number in shown]
    if format == "h264":
        path = tmp_path / "out" / "clip_film.mp4"
        assert times_in(path) == pytest.approx([time / 1000 for time in times])
        assert Fraction(iio.immeta(path, plugin="pyav")["fps"]).limit_denominator(100) > 10
        for number, drawn in zip(shown, iio.imiter(path, plugin="pyav"), strict=True):
            # beside legend, mask and the line at the bottom
            distances = [np.abs(drawn[:70, 64:].astype(int) - frame[:70, 64:]).mean() for frame in moving_frames(12)]
            assert int(np.argmin(distances)) == number
    else:
        path = tmp_path / "out" / "clip_film.gif"
        assert gif_durations(path)[:-1] == np.diff(times).tolist()
    assert outputs(tmp_path / "out", format=format).is_result(path)


def test_a_film_for_each_video_and_one_for_all_frames(tmp_path):
    (tmp_path / "data").mkdir()
    clips = [write_video(tmp_path / "data" / f"{name}.mp4", moving_frames(12)[:3], TIMES[:3]) for name in "bd"]
    loose = list(frames(tmp_path / "frames"))
    items = [loose[0]]
    for clip, more in zip(clips, loose[1:3], strict=True):
        items += [item(video_index(clip).frame_file(number), (128, 96), number) for number in range(3)] + [more]
    film_of(items, tmp_path / "out", format="h264")
    lengths = {path.name: len(times_in(path)) for path in (tmp_path / "out").iterdir()}
    assert lengths == {"b_film.mp4": 3, "d_film.mp4": 3, "film.mp4": 3}


def test_a_second_run_begins_a_new_film_and_large_frames_are_made_smaller(tmp_path):
    for run in range(2):
        for format in FORMATS:
            some = list(frames(tmp_path / f"frames{run}{format}"))[: 3 - run]
            film_of(some, tmp_path / "out", format=format, width=100)
    assert iio.imread(tmp_path / "out" / "film.gif").shape == (2, 60, 100, 3)
    assert np.stack(list(iio.imiter(tmp_path / "out" / "film.mp4"))).shape == (2, 60, 100, 3)


def test_odd_sizes_are_filled_up(tmp_path):
    film_of(frames(tmp_path / "frames", size=(201, 121)), tmp_path / "out", format="h264")
    film = np.stack(list(iio.imiter(tmp_path / "out" / "film.mp4")))
    assert film.shape == (5, 122, 202, 3)
    assert np.abs(film[0, -1, -1] - np.array(COLOURS[0])).max() <= 12
    assert iio.immeta(tmp_path / "out" / "film.mp4", plugin="pyav")["codec"] == "h264"


def test_without_an_encoder_the_film_is_a_gif(tmp_path, monkeypatch, caplog):
    monkeypatch.setitem(__import__("sys").modules, "av", None)
    film_of(list(frames(tmp_path / "frames"))[:2], tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["film.gif"]
    assert 'no encoder of H.264, the film will be a GIF: pip install "monai-margincal[video]"' in caplog.text
    with pytest.raises(ImportError, match=r"writing a film in H\.264 needs av"):
        outputs(tmp_path, format="h264")


def test_the_time_of_a_gif_is_rounded_once(tmp_path):
    film = GifFilm(tmp_path / "a.gif", rate=Fraction(30))
    for number in range(31):
        film.append(np.full((4, 4, 3), 8 * number, np.uint8), Fraction(number, 30))
    assert sum(gif_durations(tmp_path / "a.gif")[:-1]) == 1000


def test_what_makes_no_film_is_named(tmp_path):
    with pytest.raises(ValueError, match="fps: found 0, expected more than 0 and at most 1000"):
        outputs(tmp_path, fps=0)
    with pytest.raises(ValueError, match="fps: found 60, expected more than 0 and at most 50"):
        outputs(tmp_path, fps=60, format="gif")
    with pytest.raises(ValueError, match="width: found 0, expected 1 or more"):
        outputs(tmp_path, width=0)
    with pytest.raises(ValueError, match="format: found 'avi', expected 'auto', 'h264' or 'gif'"):
        outputs(tmp_path, format="avi")
    save = SaveImageOutputsd("pred", outputs(tmp_path / "out"))
    save(next(frames(tmp_path / "a")))
    with pytest.raises(ValueError, match=r"f0\.png: found a frame of 120 x 200 pixels in a film of 200 x 120"):
        save(next(frames(tmp_path / "b", size=(120, 200))))
