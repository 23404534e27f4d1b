"""Preprocessing drift between training, validation and inference (FLIP pull 1020: -0.008 Dice, invisible without truth)."""

from __future__ import annotations

import re

import pytest
from monai.bundle import ConfigParser

from monai_margincal.bundle.check.drift import check_drift
from monai_margincal.bundle.check.image_chain import image_chain

LOAD = {"_target_": "LoadImaged", "keys": ["image", "label"]}
SPACE = {"_target_": "Spacingd", "keys": ["image", "label"], "pixdim": "@pixdim", "mode": ["bilinear", "nearest"]}
SCALE = {"_target_": "ScaleIntensityRanged", "keys": "image", "a_min": "$-@width / 2", "a_max": 100}
FLIP = {"_target_": "RandFlipd", "keys": ["image", "label"]}
ONLY_LABEL = {"_target_": "AsDiscreted", "keys": "label", "to_onehot": 2}
PAD = {"_target_": "SpatialPadd", "keys": ["image", "label"], "spatial_size": [9, 9]}

INFERENCE = [
    {"_target_": "monai.transforms.LoadImageD", "keys": "image"},
    {"_target_": "Spacingd", "keys": ["image"], "pixdim": [1, 1, 1], "mode": "bilinear"},
    {"_target_": "ScaleIntensityRangeDict", "keys": "image", "a_min": -500.0, "a_max": 100},
]


def chain(transforms, **others):
    parser = ConfigParser({"pixdim": (1, 1, 1), "width": 1000, "preprocessing": transforms, **others})
    return image_chain(parser, "preprocessing")


TRAIN = [
    {"_target_": "Compose", "transforms": [LOAD, ONLY_LABEL, SPACE, SCALE, PAD, FLIP, {**SCALE, "a_min": 7}]},
    "$@fixed + @random",
    ["@first", SPACE, SCALE],
    [{"_target_": "Compose", "transforms": [LOAD, SPACE]}, SCALE],
    [LOAD, {**FLIP, "_disabled_": True}, SPACE, {**SCALE, "a_min": 3, "_disabled_": "$True"}, SCALE],
]


@pytest.mark.parametrize("training", TRAIN, ids=["compose", "sum of lists", "reference", "nested", "disabled"])
def test_the_same_chain_written_in_five_ways(training):
    ours = chain(training, fixed=[LOAD, SPACE, SCALE], random=[PAD, FLIP], first=LOAD)
    assert [name for name, _ in ours] == ["LoadImaged", "Spacingd", "ScaleIntensityRanged"]
    assert check_drift({"train.json": ours, "inference.json": chain(INFERENCE)}) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t[1].update(pixdim=[1, 1, 2]), r"Spacingd with pixdim \[1, 1, 2\], expected \(1, 1, 1\)"),
        (lambda t: t[1].update(mode="nearest"), "Spacingd with mode nearest, expected bilinear"),
        (lambda t: t[2].update(clip=True), "ScaleIntensityRanged with clip True, expected its default"),
        (
            lambda t: t.pop(1),
            r"image transforms \['LoadImaged', 'ScaleIntensityRanged'\], expected \['LoadImaged', 'Spacingd'",
        ),
        (lambda t: t.reverse(), r"image transforms \['ScaleIntensityRanged', 'Spacingd', 'LoadImaged'\]"),
    ],
    ids=["value", "per key", "default", "missing", "order"],
)
def test_every_difference_is_an_error(change, message):
    transforms = [dict(step) for step in INFERENCE]
    change(transforms)
    (finding,) = check_drift({"train.json": chain(TRAIN[0]), "inference.json": chain(transforms)})
    assert finding.severity == "error"
    assert finding.files == ("inference.json",)
    assert re.search(message, str(finding)), str(finding)


def test_nothing_to_compare():
    assert chain([]) == []
    assert image_chain(ConfigParser({}), "preprocessing") is None
    assert check_drift({"train.json": chain(TRAIN[0])}) == []
