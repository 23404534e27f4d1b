"""Published weights: every layout loads strictly and reproduces the published programs' outputs."""

from __future__ import annotations

import re
from collections import OrderedDict

import numpy as np
import pytest
import torch
from monai.networks.nets import BasicUNet
from networks.golden_weights import golden_weights
from shared import GOLDEN

from monai_margincal.networks import COPLENet, convert_coplenet_state_dict, coplenet_config_of

PUBLISHED = ("monai02", "authors")


def golden_input(step: float, *shape: int) -> torch.Tensor:
    return torch.cos(step * torch.arange(int(np.prod(shape)), dtype=torch.float64)).reshape(shape)


def original_program_weights() -> dict[str, torch.Tensor]:
    """The original program and PyMIC: the names of the paper's code, but batch norm."""
    weights = golden_weights("authors")
    norms = [
        key.removesuffix(".weight") for key, value in weights.items() if key.endswith("weight") and value.ndim == 1
    ]
    for norm in norms:
        channels = weights[f"{norm}.weight"].shape[0]
        weights[f"{norm}.running_mean"] = torch.linspace(-0.1, 0.1, channels, dtype=torch.float64)
        weights[f"{norm}.running_var"] = torch.linspace(0.5, 2, channels, dtype=torch.float64)
    return weights


def load(weights) -> COPLENet:
    network = COPLENet(**coplenet_config_of(weights)).double().eval()
    network.load_state_dict(convert_coplenet_state_dict(weights), strict=True)
    return network


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_outputs_are_reproduced(name):
    """Project-MONAI/MONAI#572: a re-implementation that loads the published weights must give their results."""
    network = load(golden_weights(name))
    channels = network.in_channels
    expected = np.load(GOLDEN / f"coplenet_{name}.npz")
    with torch.no_grad():
        y2d = network(golden_input(0.013, 2, channels, 64, 96))
        y3d = network(golden_input(0.021, 1, channels, 3, 32, 32))
    np.testing.assert_allclose(y2d, expected["y2d"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(y3d, expected["y3d"], rtol=0, atol=1e-9)


def test_configurations():
    assert coplenet_config_of(golden_weights("monai02")) == {
        "in_channels": 1,
        "out_channels": 2,
        "features": (32, 64, 128, 256, 512),
        "norm": "batch",
        "upsample": "bilinear",
    }
    assert coplenet_config_of(golden_weights("authors")) == {
        "in_channels": 3,
        "out_channels": 5,
        "features": (16, 32, 64, 128, 256),
        "norm": ("group", {"num_groups": 4}),
        "upsample": "bilinear",
    }


def test_original_program_with_batch_norm():
    """Its names with the running statistics of batch norm; without the counters that PyTorch before 0.4.1 did not write."""
    weights = original_program_weights()
    network = load(weights)
    assert coplenet_config_of(weights)["norm"] == "batch"
    torch.testing.assert_close(network.aspp.merge.norm.running_var, weights["aspp.conv_1x1.1.running_var"])
    torch.testing.assert_close(
        network.down3.conv.gate.excite.weight, weights["down3.conv.conv_conv.7.se_layers.3.weight"]
    )
    assert int(network.aspp.merge.norm.num_batches_tracked) == 0


def test_two_layouts_of_the_same_network_agree():
    """The original names and the MONAI 0.2 names, filled with the same values, are the same function."""
    monai02 = golden_weights("monai02")
    renames = (
        (r"conv_conv_se\.0\.conv", "conv_conv.0"),
        (r"conv_conv_se\.0\.norm", "conv_conv.1"),
        (r"conv_conv_se\.2\.conv", "conv_conv.4"),
        (r"conv_conv_se\.2\.norm", "conv_conv.5"),
        (r"conv_conv_se\.3\.fc\.0", "conv_conv.7.se_layers.1"),
        (r"conv_conv_se\.3\.fc\.2", "conv_conv.7.se_layers.3"),
        (r"aspp\.convs\.0", "aspp.conv_1"),
        (r"aspp\.convs\.1", "aspp.conv_2"),
        (r"aspp\.convs\.2", "aspp.conv_3"),
        (r"aspp\.convs\.3", "aspp.conv_4"),
        (r"aspp\.conv_k1\.conv", "aspp.conv_1x1.0"),
        (r"aspp\.conv_k1\.norm", "aspp.conv_1x1.1"),
        (r"(bridge\d)\.conv", r"\1.conv.0"),
        (r"(bridge\d)\.norm", r"\1.conv.1"),
        (r"(up\d)\.up\.upsample\.0", r"\1.conv1x1"),
        (r"out_conv\.conv", "out_conv"),
    )
    original = {}
    for name, value in monai02.items():
        for pattern, replacement in renames:
            name = re.sub(f"{pattern}(?=\\.[a-z_]+$)", replacement, name)
        original[name] = value[:, :, None, None] if ".se_layers." in name and name.endswith("weight") else value
    x = golden_input(0.017, 1, 1, 48, 40)
    with torch.no_grad():
        assert torch.equal(load(original)(x), load(monai02)(x))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda w: {"model_state_dict": w, "iteration": 10},
        lambda w: {"epoch": 1, "state_dict": w},
        lambda w: {"model": OrderedDict(w), "optimizer": {}},
        lambda w: {"network": w},
        lambda w: {f"module.{name}": value for name, value in w.items()},
        lambda w: {"model_state_dict": {f"module.{name}": value for name, value in w.items()}},
        lambda w: dict(reversed(w.items())),
    ],
    ids=["model_state_dict", "state_dict", "model", "network", "module", "both", "reversed"],
)
@pytest.mark.parametrize(
    "make", [lambda: golden_weights("authors"), original_program_weights], ids=["authors", "original"]
)
def test_wrappers_and_prefixes(make, wrap):
    weights = make()
    plain, wrapped = convert_coplenet_state_dict(weights), convert_coplenet_state_dict(wrap(weights))
    assert list(plain) == list(wrapped)
    assert all(torch.equal(plain[name], wrapped[name]) for name in plain)


@pytest.mark.parametrize("upsample", ["bilinear", "deconv"])
@pytest.mark.parametrize("norm", ["batch", ("group", {"num_groups": 4}), "instance"])
@pytest.mark.parametrize("act", ["leakyrelu", "prelu"])
def test_own_layout_comes_back_unchanged(norm, upsample, act):
    config = {"in_channels": 2, "out_channels": 3, "features": (8, 16, 32, 64, 128), "norm": norm, "upsample": upsample}
    own = COPLENet(act=act, **config).state_dict()
    converted = convert_coplenet_state_dict(own)
    assert list(converted) == list(own)
    assert all(converted[name] is own[name] for name in own)
    assert coplenet_config_of(own) == config | ({"act": "prelu"} if act == "prelu" else {})


def test_values_keep_dtype_and_are_not_copied():
    weights = {
        name: value.half() if value.is_floating_point() else value for name, value in golden_weights("authors").items()
    }
    converted = convert_coplenet_state_dict(weights)
    assert converted["out_conv.weight"] is weights["out_conv.weight"]
    assert converted["in_conv.gate.squeeze.weight"].dtype == torch.float16


def test_round_trip_through_a_file_without_pickle(tmp_path):
    torch.save({"model_state_dict": golden_weights("authors")}, tmp_path / "published.pt")
    loaded = torch.load(tmp_path / "published.pt", map_location="cpu", weights_only=True)
    torch.save(convert_coplenet_state_dict(loaded), tmp_path / "model.pt")
    network = COPLENet(**coplenet_config_of(loaded))
    network.load_state_dict(torch.load(tmp_path / "model.pt", weights_only=True), strict=True)


def unet_weights():
    return BasicUNet(spatial_dims=2, features=(4, 4, 8, 8, 8, 4)).state_dict()


def without(name):
    weights = golden_weights("authors")
    del weights[name]
    return weights


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (unet_weights, ValueError, r"not COPLE-Net's weights.*found .*conv_0.*and \d+ more"),
        (dict, ValueError, r"not COPLE-Net's weights.*found none"),
        (
            lambda: without("up3.conv1x1.bias"),
            ValueError,
            r"0 unexpected names \(none\), 1 missing \(in COPLENet's words: up3.up.project.bias\)",
        ),
        (
            lambda: golden_weights("authors") | {"head.weight": torch.zeros(2)},
            ValueError,
            r"1 unexpected names \(head.weight\), 0 missing",
        ),
        (
            lambda: golden_weights("authors") | {"up2.conv1x1.bias": torch.zeros(3)},
            ValueError,
            r"up2.up.project.bias: found \(3,\), expected \(32,\)",
        ),
        (lambda: golden_weights("authors") | {"epoch": 3}, TypeError, r"epoch: int.*'model_state_dict'"),
        (lambda: [1, 2], TypeError, r"must map parameter names to tensors, found list"),
        (lambda: torch.nn.Linear(1, 1), TypeError, r"found Linear"),
    ],
)
@pytest.mark.parametrize("function", [convert_coplenet_state_dict, coplenet_config_of])
def test_unknown_layouts_are_named(function, make, error, message):
    with pytest.raises(error, match=message):
        function(make())
