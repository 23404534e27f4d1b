"""Sizes and types that metadata has wrong."""

from __future__ import annotations

import pytest
from monai.bundle import ConfigParser

from monai_margincal.bundle.check.tensor_formats import check_formats


def formats(shape, inferer, preprocessing=(), dtype=None, saver=None):
    metadata = {"network_data_format": {"inputs": {"image": {"spatial_shape": shape}}}}
    if dtype:
        metadata["network_data_format"]["post_processed_outputs"] = {"pred": {"dtype": dtype}}
    config = {
        "size": 96,
        "inferer": {"_target_": "SlidingWindowInferer", **inferer},
        "preprocessing": {"_target_": "Compose", "transforms": list(preprocessing)},
        "postprocessing": {
            "_target_": "Compose",
            "transforms": [{"_target_": "SaveImaged", "keys": "pred", **(saver or {})}],
        },
    }
    return [str(f) for f in check_formats(metadata, ConfigParser(config), "configs/inference.json")]


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ([96, 96, 96], [96, 96, 96]), (["16*n", "2**p"], [512, 512]), (["2**p*n", "*"], [48, 7]), ([96, 96], "$[@size, @size]"),
        ([229, 229], [-1, -1]), ([229, 229], 96),
    ],
)  # fmt: skip
def test_sizes_that_agree(shape, size):
    """A window of one number or of whatever size the image has says nothing that could be compared."""
    assert formats(shape, {"roi_size": size}) == []


@pytest.mark.parametrize(
    ("shape", "size"),
    [([229, 229], [299, 299]), (["16*n", "16*n"], [500, 500]), ([160] * 3, [96] * 3), ([96] * 3, [96] * 2)],
)
def test_metadata_with_another_size_than_inference_feeds(shape, size):
    """Project-MONAI/model-zoo#303: metadata said 229, the pipeline resized to 299, and the network takes both."""
    (text,) = formats(shape, {"roi_size": size})
    assert f"spatial_shape {shape} of the network's input, expected {size}, roi_size of inferer" in text
    steps = [{"_target_": "ResizeD", "keys": "image", "spatial_size": size}, {"_target_": "ToTensord", "keys": "image"}]
    (text,) = formats(shape, {}, steps)
    assert f"expected {size}, spatial_size of Resized in configs/inference.json" in text


def test_the_type_of_the_saved_mask():
    """The zoo's bundles say nothing and save float32."""
    assert formats(["*"], {}, dtype="uint8", saver={"output_dtype": "uint8"}) == []
    assert formats(["*"], {}, dtype="uint8", saver={"output_dtype": "$torch.uint8"}) == []
    assert formats(["*"], {}, dtype="uint8", saver={"keys": "probability"}) == []
    (text,) = formats(["*"], {}, dtype="uint8")
    assert "found SaveImaged that saves float32, expected uint8, dtype of post_processed_outputs" in text
