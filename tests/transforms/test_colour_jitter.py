"""Random colours: against Pillow's and the standard library's own, repeatable, within what a picture can show."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageEnhance

from monai_margincal.transforms import RandColourJitterd
from monai_margincal.transforms.colour_jitter import hue_turn

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
#: draws factors that are far from 1 for every amount
SEED = 0
NOTHING = {"brightness": 0, "contrast": 0, "saturation": 0, "hue": 0}


def picture(seed=0):
    return np.random.RandomState(seed).randint(40, 180, (8, 9, 3)).astype(np.uint8)


def as_tensor(rows):
    return torch.from_numpy(rows.transpose(2, 1, 0).astype(np.float32) / 255)


def normalised(image):
    along = (3, 1, 1)
    return (image - torch.tensor(MEAN).reshape(along)) / torch.tensor(STD).reshape(along)


@pytest.mark.parametrize(
    ("amount", "enhance", "factor"),
    [
        ("brightness", ImageEnhance.Brightness, 0),
        ("contrast", ImageEnhance.Contrast, 1),
        ("saturation", ImageEnhance.Color, 2),
    ],
)
def test_each_amount_is_that_of_pillow(amount, enhance, factor):
    jitter = RandColourJitterd("image", prob=1.0, **{**NOTHING, amount: 0.3}, mean=MEAN, std=STD).set_random_state(SEED)
    changed = jitter({"image": normalised(as_tensor(picture()))})["image"]
    expected = np.asarray(enhance(Image.fromarray(picture())).enhance(jitter.factors[factor]))
    difference = changed - normalised(as_tensor(expected))
    assert abs(jitter.factors[factor] - 1) > 0.02
    assert (difference * torch.tensor(STD).reshape(3, 1, 1)).abs().max() < 2 / 255  # Pillow rounds, twice for contrast


@given(st.floats(-0.5, 0.5))
def test_a_turn_of_the_hue_keeps_greys_and_luma(turns):
    turn = hue_turn(turns)
    np.testing.assert_allclose(turn @ np.ones(3), np.ones(3), atol=1e-3)
    np.testing.assert_allclose(np.array([0.299, 0.587, 0.114]) @ turn, [0.299, 0.587, 0.114], atol=1e-9)


@pytest.mark.parametrize("turns", [-0.25, 0.1, 0.25])
def test_a_turn_of_the_hue_goes_the_same_way_for_every_colour(turns):
    """About as far as in the cone of hues of the standard library: both go round the axis of greys."""
    for hue in np.linspace(0, 1, 12, endpoint=False):
        colour = np.array(colorsys.hsv_to_rgb(hue, 0.2, 0.5))
        turned = colorsys.rgb_to_hsv(*(hue_turn(turns) @ colour))[0]
        moved = (turned - hue + 0.5) % 1 - 0.5
        assert min(abs(abs(moved) - abs(turns)), 1) < 0.12
        assert len({np.sign(moved)} - {0}) <= 1


def test_prob_and_seed():
    image = normalised(as_tensor(picture()))
    never = RandColourJitterd("image", prob=0.0, mean=MEAN, std=STD)
    assert never({"image": image})["image"] is image
    first, second = (
        RandColourJitterd("image", prob=1.0, mean=MEAN, std=STD).set_random_state(7)({"image": image})["image"]
        for _ in range(2)
    )
    assert torch.equal(first, second)
    assert not torch.allclose(first, image, atol=0.01)


@given(st.integers(0, 1000))
def test_every_value_stays_within_what_a_picture_can_show(seed):
    jitter = RandColourJitterd("image", prob=1.0, brightness=1, contrast=1, saturation=1, hue=0.5, mean=MEAN, std=STD)
    changed = jitter.set_random_state(seed)({"image": normalised(as_tensor(picture(seed)))})["image"]
    shown = changed * torch.tensor(STD).reshape(3, 1, 1) + torch.tensor(MEAN).reshape(3, 1, 1)
    assert shown.min() >= -1e-6
    assert shown.max() <= 1 + 1e-6


def test_wrong_amounts_and_images_are_named():
    with pytest.raises(ValueError, match=r"contrast: found 1.5, expected 0 to 1"):
        RandColourJitterd("image", contrast=1.5)
    with pytest.raises(ValueError, match=r"hue: found 0.6, expected 0 to 0.5"):
        RandColourJitterd("image", hue=0.6)
    with pytest.raises(ValueError, match="found an image of 1 channels, expected 3: red, green and blue"):
        RandColourJitterd("image", prob=1.0)({"image": torch.zeros(1, 4, 4)})
