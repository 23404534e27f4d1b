"""Metadata, network, configuration and counts must speak of the same classes."""

from __future__ import annotations

import pytest
from monai.bundle import ConfigParser

from monai_margincal.bundle.check.class_names import check_class_names
from monai_margincal.counting import ClassCounts

NAMES = {"0": "background", "1": "lesion"}


def metadata(**pred):
    return {"network_data_format": {"outputs": {"pred": {"num_channels": 2, "channel_def": NAMES, **pred}}}}


def found(of_metadata, **config):
    return [str(finding) for finding in check_class_names(of_metadata, ConfigParser(config), "train.json")]


def test_what_agrees_and_what_says_nothing():
    config = {
        "class_names": ["background", "lesion"],
        "num_classes": 2,
        "network_def": {"out_channels": "@num_classes"},
    }
    assert found(metadata(), **config) == []
    assert found({}, **config) == []
    assert found(metadata()) == []


@pytest.mark.parametrize(
    ("of_metadata", "config", "message"),
    [
        (metadata(num_channels=3), {}, "found 2 names in channel_def of outputs#pred, expected 3, its num_channels"),
        (
            metadata(),
            {"network_def": {"out_channels": 3}},
            "train.json: found out_channels 3 of network_def, expected 2, num_channels of outputs#pred in metadata.json",
        ),
        (
            {},
            {"num_classes": 3, "network_def": {"out_channels": 2}},
            "found num_classes 3, expected 2, out_channels of",
        ),
        (metadata(), {"class_names": ["background", "tumour"]}, "found class_names ['background', 'tumour'], expected"),
        (metadata(), {"class_counts": "/none.json"}, "found class_counts /none.json: "),
    ],
)
def test_what_contradicts(of_metadata, config, message):
    (text,) = found(of_metadata, **config)
    assert message in text


def test_names_are_in_the_order_of_their_numbers():
    names = {str(number): f"class {number}" for number in range(11)}
    ordered = [f"class {number}" for number in range(11)]
    assert found(metadata(num_channels=11, channel_def=dict(sorted(names.items()))), class_names=ordered) == []


def test_counts_of_other_classes(tmp_path):
    path = str(tmp_path / "counts.json")
    ClassCounts([9, 1, 1]).to_json(path)
    (text,) = found(metadata(), class_counts=path)
    assert text == f"error: {path}: found counts of 3 classes, expected 2, the network's channels"
    ClassCounts([9, 1], names=["background", "tumour"]).to_json(path)
    (text,) = found(metadata(), class_counts=path)
    assert "found classes ['background', 'tumour'], expected ['background', 'lesion']" in text
    assert found(metadata(), class_counts="$@counts") == [], "an expression is known at run time only"
