"""The network, run once with what metadata says it takes."""

from __future__ import annotations

import json

import pytest

from monai_margincal.bundle.check.configs import Workflow
from monai_margincal.bundle.check.network import check_network

NETWORK = {"_target_": "BasicUNet", "spatial_dims": 2, "in_channels": 1, "out_channels": 2, "features": [4] * 6}
TENSOR = {"spatial_shape": [32, 32], "dtype": "float32", "value_range": [], "is_patch_data": False}
FORMAT = {
    "inputs": {"image": {**TENSOR, "num_channels": 1}},
    "outputs": {"pred": {**TENSOR, "num_channels": 2}},
}


@pytest.fixture
def workflow(tmp_path):
    def make(config, **overrides):
        (tmp_path / "configs").mkdir(exist_ok=True)
        (tmp_path / "configs" / "metadata.json").write_text(json.dumps({"network_data_format": FORMAT}))
        path = tmp_path / "configs" / "inference.json"
        path.write_text(json.dumps(config))
        return Workflow(tmp_path, "infer", (path,), overrides)

    return make


def test_a_network_that_fits(workflow):
    assert check_network(workflow({"network_def": NETWORK})) == []


def test_none_is_said_and_no_error(workflow):
    (finding,) = check_network(workflow({}))
    assert str(finding) == (
        "info: configs/inference.json: found no network_def: input and output are not verified, expected network_def"
    )


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"network_def#out_channels": 3}, "output channel number `3` doesn't match: `2`"),
        ({"network_def#in_channels": 3}, "RuntimeError"),
    ],
)
def test_a_network_that_does_not(workflow, overrides, message):
    (finding,) = check_network(workflow({"network_def": NETWORK}, **overrides))
    assert finding.severity == "error"
    assert message in finding.message
    assert finding.message.endswith("expected a network as metadata.json describes it")
