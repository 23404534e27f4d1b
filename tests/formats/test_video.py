"""Frames of a video: the right ones, at the right times, in bounded memory; damaged ones are named."""

from __future__ import annotations

import os
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest
from video_files import TIMES, damage, moving_frames, number_in, write_video

from monai_margincal.formats.colour_frame import colour_frame
from monai_margincal.formats.video import read_video_frame, video_frame, video_index

FRAMES = moving_frames(len(TIMES))


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return write_video(tmp_path_factory.mktemp("video") / "clip.mp4", FRAMES)


def test_times_and_pictures_are_those_that_were_written(clip):
    index = video_index(clip)
    assert [index.seconds(number) for number in range(len(TIMES))] == pytest.approx([time / 1000 for time in TIMES])
    assert 10 < index.rate < 30
    for number, frame in enumerate(FRAMES):
        found = read_video_frame(clip, number)
        assert found.dtype == np.uint8
        assert number_in(found) == number
        assert np.abs(found.astype(int) - frame).mean() < 5


def test_pictures_are_those_of_another_reader(clip):
    for number, frame in enumerate(iio.imiter(clip, plugin="pyav")):
        assert (frame == read_video_frame(clip, number)).all()


@pytest.mark.parametrize(("name", "codec"), [("a.avi", "mjpeg"), ("a.mkv", "libx264"), ("a.mov", "mpeg4")])
def test_other_containers_and_codecs(tmp_path, name, codec):
    times = tuple(range(0, 240, 40))
    path = write_video(tmp_path / name, FRAMES[:6], times, codec)
    index = video_index(path)
    assert [index.seconds(number) for number in range(6)] == pytest.approx([time / 1000 for time in times], abs=0.001)
    assert [number_in(read_video_frame(path, number)) for number in range(6)] == list(range(6))


def test_frames_in_any_order_and_again(clip):
    for number in (5, 5, 2, 11, 0, 7, 6):
        assert number_in(np.asarray(colour_frame(video_index(clip).frame_file(number)))) == number


def test_a_file_that_has_changed_is_read_anew(tmp_path):
    path = write_video(tmp_path / "a.mp4", FRAMES[:3], TIMES[:3])
    assert number_in(read_video_frame(path, 1)) == 1
    write_video(path, FRAMES[5:9], TIMES[:4])
    assert len(video_index(path).times) == 4
    assert number_in(read_video_frame(path, 1)) == 6


def test_the_name_of_a_frame(clip):
    assert video_frame(clip / "000007.png") == (clip, 7)
    assert video_frame(str(clip)) is None
    assert video_frame(clip / "mask.png") is None
    assert video_frame(clip.parent / "000007.png") is None


@pytest.mark.parametrize(("broken", "named"), [(5, {5, 6, 7}), (4, {4, 5, 6, 7}), (11, {11})])
def test_a_damaged_frame_is_named_and_so_are_those_that_build_on_it(tmp_path, broken, named):
    """The decoder shows something for them, as if nothing had happened."""
    path = damage(write_video(tmp_path / "whole.mp4", FRAMES, bf="0"), tmp_path / "broken.mp4", broken)
    messages = errors_in(path)
    assert set(messages) == named
    place = f"{path}/{broken:06d}.png: frame {broken} of the video, at {TIMES[broken] / 1000:.3f} s"
    assert messages.pop(broken).startswith(f"{place}: found data that cannot be decoded (Invalid data")
    for message in messages.values():
        assert message.endswith(": found a frame that builds on one that cannot be decoded, expected a picture")


@pytest.mark.parametrize("broken", range(12))
def test_what_is_given_is_as_in_the_whole_file(clip, tmp_path, broken):
    """Whichever frame is damaged, with frames that build on later ones too."""
    path = damage(clip, tmp_path / "broken.mp4", broken)
    messages = errors_in(path)
    assert broken in messages
    assert len(messages) <= 8
    for number in set(range(12)) - set(messages):
        assert (read_video_frame(path, number) == read_video_frame(clip, number)).all()


def errors_in(path):
    messages = {}
    for number in range(len(video_index(path).times)):
        try:
            read_video_frame(path, number)
        except ValueError as error:
            messages[number] = str(error)
    return messages


def test_one_damaged_picture_of_its_own_costs_no_other(tmp_path):
    times = tuple(range(0, 240, 40))
    whole = write_video(tmp_path / "a.avi", FRAMES[:6], times, "mjpeg")
    path = damage(whole, tmp_path / "b.avi", 3)
    for number in range(6):
        if number == 3:
            with pytest.raises(ValueError, match=r"b\.avi/000003\.png: frame 3 of the video, at 0\.120 s: found data"):
                read_video_frame(path, number)
        else:
            assert number_in(read_video_frame(path, number)) == number


def test_what_is_no_video_is_named(clip, tmp_path):
    text = tmp_path / "text.mp4"
    text.write_text("no video")
    with pytest.raises(ValueError, match=r"text\.mp4: cannot be read, expected a video: Invalid data"):
        video_index(text)
    half = tmp_path / "half.mp4"
    half.write_bytes(clip.read_bytes()[: clip.stat().st_size // 2])
    with pytest.raises(ValueError, match=r"half\.mp4: cannot be read, expected a video"):
        video_index(half)
    empty = tmp_path / "empty.mp4"
    empty.touch()
    with pytest.raises(ValueError, match=r"empty\.mp4: found an empty file"):
        video_index(empty)
    with pytest.raises(ValueError, match=r"clip\.mp4: found no frame 12, expected 0 to 11"):
        read_video_frame(clip, 12)


def test_a_video_that_ends_early_is_refused(tmp_path):
    """With the index at its beginning a truncated file opens like a whole one."""
    import av

    whole = write_video(tmp_path / "whole.mp4", FRAMES)
    early = tmp_path / "early.mp4"
    with av.open(str(whole)) as source, av.open(str(early), "w", options={"movflags": "faststart"}) as target:
        copy = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.size:
                packet.stream = copy
                target.mux(packet)
    assert len(video_index(early).times) == 12
    early.write_bytes(early.read_bytes()[: int(0.6 * early.stat().st_size)])
    with pytest.raises(
        ValueError, match=r"early\.mp4: (found \d+ frames, expected 12: is the file complete|cannot be read)"
    ):
        video_index(early)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the resident memory is read from /proc")
def test_memory_does_not_grow_with_the_video(tmp_path):
    number = 400
    path = write_video(
        tmp_path / "long.mp4", moving_frames(8, size=(320, 256)) * (number // 8), range(0, 40 * number, 40)
    )

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for frame in range(60):
        read_video_frame(path, frame)
    before = resident()
    for frame in range(60, number):
        read_video_frame(path, frame)
    # all pictures would be 84 MB
    assert resident() - before < 15e6
