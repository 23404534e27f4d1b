"""The image's transforms, read from a configuration."""

from __future__ import annotations

from monai.bundle import ConfigParser

from monai_margincal.bundle.check.image_chain import image_chain, transform_ids

LOAD = {"_target_": "LoadImaged", "keys": ["image", "label"], "dtype": ["float32", "uint8"]}
LABEL = {"_target_": "AsDiscreted", "keys": "label", "to_onehot": 2}
CROP = {"_target_": "CenterSpatialCropd", "keys": ["image", "label"], "roi_size": [9, 9]}
LUNGS = {"_target_": "monai_margincal.transforms.LungRegionCropd", "keys": ["image", "label"], "margin_mm": "@margin"}
FLIP = {"_target_": "RandFlipd", "keys": ["image"]}


def parser(transforms, **others):
    return ConfigParser({"preprocessing": transforms, "margin": 20.0, **others})


def test_what_is_not_the_image_s_or_changes_nothing_is_left_out():
    chain = image_chain(
        parser([LOAD, LABEL, CROP, LUNGS, FLIP, {**LOAD, "_target_": "ScaleIntensityd"}]), "preprocessing"
    )
    assert chain == [("LoadImaged", {"dtype": "float32"}), ("LungRegionCropd", {"margin_mm": 20.0})]


def test_another_key():
    assert image_chain(parser([LOAD, LABEL]), "preprocessing", key="label") == [
        ("LoadImaged", {"dtype": "uint8"}),
        ("AsDiscreted", {"to_onehot": 2}),
    ]


def test_ids_of_what_is_composed_of_references():
    config = parser(
        "$@first + @rest#transforms", first=[LOAD], rest={"_target_": "Compose", "transforms": [LABEL, CROP]}
    )
    config.parse(True)
    assert transform_ids(config, "preprocessing") == ["first::0", "rest::transforms::0", "rest::transforms::1"]
    assert transform_ids(ConfigParser({"a": 3}), "a") == []
