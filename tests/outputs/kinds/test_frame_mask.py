"""The mask of a frame, read back by another library."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from monai.data import MetaTensor
from PIL import Image
from skimage.io import imread

from monai_margincal.outputs import Outputs, SaveImageOutputsd


@pytest.fixture
def frame(tmp_path):
    path = tmp_path / "data" / "film" / "a_001.png"
    path.parent.mkdir(parents=True)
    Image.fromarray(np.full((90, 160, 3), 100, np.uint8)).save(path)
    mask = torch.zeros(1, 160, 90, dtype=torch.uint8)  # width first
    mask[0, 105:110, 20:22] = 1
    mask[0, 0, 0] = 3
    return path, MetaTensor(mask, meta={"filename_or_obj": str(path)})


def test_every_pixel_is_in_its_place(frame, tmp_path):
    path, mask = frame
    outputs = Outputs("frame_mask", tmp_path / "out", data_root_dir=tmp_path / "data")
    SaveImageOutputsd("pred", outputs)({"pred": mask})
    written = imread(tmp_path / "out" / "film" / "a_001_mask.png")
    assert written.dtype == np.uint8
    assert written.shape == (90, 160)
    assert (written == mask[0].numpy().T).all()
    assert [path.name for path in (tmp_path / "out" / "film").iterdir()] == ["a_001_mask.png"]
    assert outputs.is_result(tmp_path / "out" / "film" / "a_001_mask.png")
    assert not outputs.is_result(path)


def test_the_picture_shows_the_classes_over_the_frame(frame, tmp_path):
    _, mask = frame
    outputs = Outputs("frame_overlay", tmp_path / "out", class_names=["background", "shaft", "wrist", "probe"])
    SaveImageOutputsd("pred", outputs)({"pred": mask})
    drawn = imread(tmp_path / "out" / "a_001_overlay.png")
    assert drawn.shape == (90, 160, 3)
    orange = np.array([0xE6, 0x9F, 0x00])
    # the legend is in the upper left
    assert (drawn[60:] == 100).all()
    assert (drawn[21, 109] == np.rint((orange + 100) / 2)).all()
    with pytest.raises(ValueError, match=r"found class 3, expected one of \['background', 'shaft'\]"):
        SaveImageOutputsd("pred", Outputs("frame_overlay", tmp_path / "o", class_names=["background", "shaft"]))(
            {"pred": mask}
        )
    with pytest.raises(ValueError, match=r"found the shape \(90, 159\), expected \(90, 160\), that of the frame"):
        SaveImageOutputsd("pred", outputs)({"pred": mask[:, 1:]})
