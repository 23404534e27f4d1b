"""Windows of another size than the patches of training: lesions that a network loses without a word."""

from __future__ import annotations

import pytest
from monai.bundle import ConfigParser

from monai_margincal.bundle.check.windows import check_windows, patch_size, window_size

TRAIN = "configs/train.json"
CROP = {"_target_": "RandCropByLabelClassesd", "keys": ["image", "label"], "spatial_size": "$[*@side, 1]"}


def training(*steps, **others):
    parser = ConfigParser({"side": [64, 48], "train": {"preprocessing": list(steps)}, **others})
    parser.parse(True)
    return parser


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([CROP], [64, 48]),
        (
            [{"_target_": "SpatialPadd", "spatial_size": [9, 9]}, CROP, {"_target_": "RandFlipd", "keys": "image"}],
            [64, 48],
        ),
        ([{"_target_": "monai.transforms.RandCropByPosNegLabelDict", "spatial_size": [96, 96, 96]}], [96, 96, 96]),
        ([{"_target_": "RandSpatialCropSamplesd", "roi_size": [32, 32]}, CROP, {**CROP, "_disabled_": True}], [64, 48]),
        ([CROP, {"_target_": "RandSpatialCropd", "roi_size": [16, 16]}], [16, 16]),
        ([{"_target_": "RandFlipd", "keys": "image"}], None),
        ([{**CROP, "spatial_size": "$None"}], None),
        ([], None),
    ],
    ids=["slices", "between others", "volume", "switched off", "the last one", "no crop", "no size", "nothing"],
)
def test_the_size_of_the_patches(steps, expected):
    assert [size for _, size in patch_size(training(*steps), TRAIN)] == ([] if expected is None else [expected])


def test_no_training():
    assert patch_size(ConfigParser({}), TRAIN) == []


@pytest.mark.parametrize(
    ("roi_size", "expected"), [([64, 64], [[64, 64]]), ([0, -1], [[0, -1]]), (None, []), ("@side", [[64, 48]])]
)
def test_the_size_of_the_windows(roi_size, expected):
    parser = training(validate={"inferer": {"_target_": "VolumeSliceInferer", "roi_size": roi_size}})
    assert [size for _, size in window_size(parser, "validate::inferer", TRAIN)] == expected


def test_every_other_window_is_a_warning_with_both_sizes():
    patches = patch_size(training(CROP), TRAIN)
    found = check_windows(patches, [("a: roi_size", [64, 48]), ("b: roi_size", [512, 512]), ("c: roi_size", [0, 0])])
    assert {finding.severity for finding in found} == {"warning"}
    source = "expected [64, 48], as in spatial_size of RandCropByLabelClassesd in configs/train.json"
    assert [str(finding) for finding in found] == [
        f"warning: b: roi_size: found windows of [512, 512], {source}",
        f"warning: c: roi_size: found windows of [0, 0], {source}",
    ]
    assert check_windows([], [("a", [1, 1])]) == check_windows(patches, []) == []
