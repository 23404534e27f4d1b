"""Videos in a list of scans: the order of frames with several workers, damaged frames, videos beside pictures."""

from __future__ import annotations

import numpy as np
import pytest
from monai.data import DataLoader
from monai.transforms import LoadImaged
from PIL import Image
from video_files import TIMES, damage, moving_frames, number_in, write_video

from monai_margincal.datasets import ScanDataset, scan_list
from monai_margincal.datasets.video_items import with_video_frames
from monai_margincal.errors import CaseError

FRAMES = moving_frames(len(TIMES))
LOAD = LoadImaged("image", reader="monai_margincal.transforms.FrameReader", ensure_channel_first=True)


@pytest.fixture
def clip(tmp_path):
    return write_video(tmp_path / "clip.mp4", FRAMES)


def dataset(items, **options):
    return ScanDataset(items, LOAD, channels=3, axes=2, **options)


@pytest.mark.parametrize("workers", [0, 3])
def test_frames_come_in_their_order(clip, workers):
    loader = DataLoader(dataset([{"image": str(clip), "operation": "x"}]), batch_size=1, num_workers=workers)
    found = []
    for item in loader:
        assert item["operation"] == ["x"]
        assert item["image"].shape == (1, 3, 128, 96)
        found.append(number_in(item["image"][0].numpy().T))
    assert found == list(range(12))


def test_a_folder_of_videos_and_pictures(clip, tmp_path):
    Image.fromarray(FRAMES[0]).save(tmp_path / "a.png")
    write_video(tmp_path / "d.avi", FRAMES[:3], (0, 40, 80), "mjpeg")
    frames = with_video_frames(scan_list([tmp_path]))
    names = [str(tmp_path / "a.png"), *(f"{clip}/{number:06d}.png" for number in range(12))]
    names += [f"{tmp_path}/d.avi/{number:06d}.png" for number in range(3)]
    assert [item["image"] for item in frames] == names
    assert len(frames) == 16
    assert [item["image"] for item in frames[-4:14]] == names[-4:14]
    with pytest.raises(IndexError):
        frames[16]


def test_a_damaged_frame_is_an_error_or_handed_over(clip, tmp_path):
    path = damage(clip, tmp_path / "broken.mp4", 5)
    strict, tolerant = (dataset([{"image": str(path)}], hand_over_errors=hand) for hand in (False, True))
    with pytest.raises(
        CaseError, match=r"^\S*broken\.mp4/000005\.png: frame 5 of the video, at 0\.230 s: found data that"
    ):
        strict[5]
    assert "broken.mp4/000005.png: frame 5 of the video" in tolerant[5]["failure"]
    assert number_in(np.asarray(tolerant[11]["image"]).T) == 11


def test_a_video_that_cannot_be_opened_fails_alone(clip, tmp_path):
    text = tmp_path / "text.mp4"
    text.write_text("no video")
    scans = dataset([{"image": str(clip)}, {"image": str(text)}], hand_over_errors=True)
    assert len(scans) == 13
    assert scans[12]["failure"].startswith(f"{text}: cannot be read, expected a video")


def test_a_video_is_no_volume(clip):
    volumes = ScanDataset([{"image": str(clip)}], LOAD)
    assert len(volumes) == 1
    with pytest.raises(CaseError, match=r"clip\.mp4: found the file name ending '\.mp4', expected one of"):
        volumes[0]
