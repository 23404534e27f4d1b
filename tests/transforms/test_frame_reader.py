"""Frames of every kind of picture become red, green and blue, width first."""

from __future__ import annotations

import numpy as np
import pytest
from monai.transforms import LoadImage
from PIL import Image

READER = "monai_margincal.transforms.FrameReader"


def load(path):
    return LoadImage(reader=READER, ensure_channel_first=True)(path)


@pytest.mark.parametrize("ending", [".png", ".bmp", ".tif"])
def test_every_pixel_is_in_its_place(tmp_path, ending):
    rows = np.random.RandomState(0).randint(0, 256, (4, 6, 3)).astype(np.uint8)  # 6 wide, 4 high
    Image.fromarray(rows).save(tmp_path / f"a{ending}")
    frame = np.asarray(load(tmp_path / f"a{ending}"))
    assert frame.shape == (3, 6, 4)
    assert (frame == rows.transpose(2, 1, 0)).all()


@pytest.mark.parametrize(
    ("mode", "colour", "expected"),
    [
        ("L", 9, (9, 9, 9)),
        ("1", 1, (255, 255, 255)),
        ("RGBA", (1, 2, 3, 0), (1, 2, 3)),
        ("LA", (7, 200), (7, 7, 7)),
        ("P", 1, (10, 20, 30)),
    ],
)
def test_other_pictures_become_colours(tmp_path, mode, colour, expected):
    picture = Image.new(mode, (3, 2), colour)
    if mode == "P":
        picture.putpalette([0, 0, 0, 10, 20, 30])
    picture.save(tmp_path / "a.png")
    assert [set(np.asarray(channel).ravel().tolist()) for channel in load(tmp_path / "a.png")] == [
        {value} for value in expected
    ]


def test_what_is_no_frame_is_named(tmp_path):
    Image.new("I;16", (3, 2)).save(tmp_path / "deep.png")
    Image.effect_noise((64, 64), 50).convert("RGB").save(tmp_path / "cut.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "cut.png").read_bytes()[:2000])
    (tmp_path / "text.png").write_text("no picture")
    for name, message in (
        ("deep", "found a picture of the mode I;16, expected a picture of one of the modes RGB, RGBA"),
        ("cut", "cannot be read, expected a picture of one of the modes RGB"),
        ("text", "cannot be read, expected a picture"),
    ):
        with pytest.raises((ValueError, RuntimeError)) as error:
            load(tmp_path / f"{name}.png")
        assert f"{name}.png: {message}" in str(error.value) + str(error.value.__cause__)
