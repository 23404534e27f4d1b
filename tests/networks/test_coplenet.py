"""COPLENet: shapes, padding, volumes, options, refusals, and the warning about unscaled input."""

from __future__ import annotations

import copy
import itertools
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from monai.bundle import ConfigParser, verify_net_in_out
from monai.data import MetaTensor
from monai.transforms import LoadImage, ScaleIntensityRange
from torch.nn import functional

import monai_margincal
from monai_margincal.networks import COPLENet
from monai_margincal.networks.coplenet import INPUT_CHECKS

SMALL = (8, 16, 32, 64, 128)
NORMS = ("batch", "group", "instance", ("group", {"num_groups": 2}))
UPSAMPLES = ("bilinear", "deconv")


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def network(**options) -> COPLENet:
    return COPLENet(**({"features": SMALL} | options)).eval()


@pytest.mark.parametrize(
    ("features", "parameters"),
    [
        ((32, 64, 128, 256, 512), 10_521_666),
        ((16, 32, 64, 128, 256), 2_634_146),
        (SMALL, 660_402),
    ],
)
def test_parameter_counts_of_the_docstring(features, parameters):
    assert sum(p.numel() for p in COPLENet(features=features).parameters()) == parameters
    assert f"{parameters:,}" in COPLENet.__doc__


@pytest.mark.parametrize(("norm", "upsample"), [*itertools.product(NORMS, UPSAMPLES)])
def test_every_option_gives_logits_of_the_inputs_size_and_a_gradient_everywhere(norm, upsample):
    net = network(in_channels=3, out_channels=4, norm=norm, upsample=upsample).train()
    logits = net(torch.rand(2, 3, 32, 48))
    assert logits.shape == (2, 4, 32, 48)
    logits.square().mean().backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name


@pytest.mark.parametrize("act", ["relu", "prelu", ("elu", {"alpha": 0.5}), ["leakyrelu", {"negative_slope": 0.2}]])
def test_activations_by_monai_name_and_as_json_lists(act):
    assert network(act=act)(torch.rand(1, 1, 16, 16)).shape == (1, 2, 16, 16)


@pytest.mark.parametrize("size", [(33, 47), (16, 17), (31, 16), (1, 1), (50, 8)])
def test_other_sizes_equal_the_extended_plane_cropped(size):
    """HiLab-git/COPLE-Net#4, HiLab-git/PyMIC_examples#16 (order of pad, resize, crop): any size works, by a stated rule."""
    net = network().double()
    x = torch.rand(2, 1, *size, dtype=torch.float64)
    rows, columns = -size[0] % 16, -size[1] % 16
    with torch.no_grad():
        expected = net(functional.pad(x, (0, columns, 0, rows), mode="replicate"))[:, :, : size[0], : size[1]]
        assert torch.equal(net(x), expected)


@pytest.mark.parametrize(("depth", "slice_batch_size"), [(1, 8), (5, 1), (5, 2), (5, 5), (5, 100)])
def test_volume_equals_its_slices(depth, slice_batch_size):
    net = network(slice_batch_size=slice_batch_size, norm="group").double()
    volume = torch.rand(2, 1, depth, 20, 33, dtype=torch.float64)
    with torch.no_grad():
        expected = torch.stack([net(volume[:, :, i]) for i in range(depth)], dim=2)
        torch.testing.assert_close(net(volume), expected, rtol=0, atol=1e-12)


def test_volume_memory_is_bounded_in_eval_mode():
    """No more than `slice_batch_size` slices are ever in the network; training takes them as one batch, as stated."""
    net = network(slice_batch_size=3)
    seen = []
    net.in_conv.register_forward_pre_hook(lambda module, args: seen.append(args[0].shape[0]))
    with torch.no_grad():
        net(torch.rand(2, 1, 4, 16, 16))
    assert seen == [3, 3, 2]
    seen.clear()
    net.train()(torch.rand(2, 1, 4, 32, 32))
    assert seen == [8]


def test_batch_norm_in_training_takes_its_statistics_over_all_slices():
    net = network(norm=("batch", {"momentum": 1.0})).train()
    volume = torch.rand(2, 1, 3, 32, 32)
    first = net.in_conv.first.conv(volume.transpose(1, 2).reshape(6, 1, 32, 32))
    net(volume)
    torch.testing.assert_close(net.in_conv.first.norm.running_mean, first.mean((0, 2, 3)))


def test_channels_last_and_metatensor():
    net = network()
    x = torch.rand(2, 1, 40, 24)
    with torch.no_grad():
        expected = net(x)
        meta = net(MetaTensor(x, meta={"filename_or_obj": "case_1"}))
        last = net.to(memory_format=torch.channels_last)(x.to(memory_format=torch.channels_last))
    torch.testing.assert_close(last, expected, rtol=1e-5, atol=1e-5)
    assert isinstance(meta, MetaTensor)
    torch.testing.assert_close(meta.as_tensor(), expected)


def test_bfloat16_and_autocast():
    net = network()
    x = torch.rand(1, 1, 32, 32)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = net(x)
    with torch.no_grad():
        torch.testing.assert_close(mixed.float(), net(x), rtol=0.1, atol=0.05)
        assert net.bfloat16()(x.bfloat16()).dtype == torch.bfloat16


def test_deepcopy_and_state_dict_reproduce_the_outputs():
    net = network(norm="group", upsample="deconv")
    other = network(norm="group", upsample="deconv")
    x = torch.rand(1, 1, 20, 20)
    with torch.no_grad():
        expected = net(x)
        assert not torch.equal(other(x), expected)
        assert torch.equal(copy.deepcopy(net)(x), expected)
        other.load_state_dict(net.state_dict(), strict=True)
        assert torch.equal(other(x), expected)


def test_calls_do_not_depend_on_each_other():
    """MONAI 8117, 8665: a forward that changes the module."""
    net = network()
    first, second = torch.rand(1, 1, 16, 16), torch.rand(1, 1, 40, 24)
    with torch.no_grad():
        forwards = net(first), net(second)
        assert torch.equal(net(second), forwards[1])
        assert torch.equal(net(first), forwards[0])


def test_dropout_acts_in_training_only():
    net = network(dropout=(0.5,) * 5, norm="group")
    x = torch.rand(1, 1, 32, 32)
    with torch.no_grad():
        assert torch.equal(net(x), net(x))
        net.train()
        assert not torch.equal(net(x), net(x))


def test_learns_a_bright_square():
    net = network(features=(4, 8, 16, 32, 64), dropout=(0.0,) * 5).train()
    x = 0.2 * torch.rand(4, 1, 32, 32)
    target = torch.zeros(4, 32, 32, dtype=torch.long)
    for i in range(4):
        x[i, 0, 4 * i : 4 * i + 9, 8:17] += 0.7
        target[i, 4 * i : 4 * i + 9, 8:17] = 1
    optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3)
    for _ in range(30):
        optimizer.zero_grad()
        functional.cross_entropy(net(x), target).backward()
        optimizer.step()
    assert (net(x).argmax(1) == target).float().mean() > 0.97


def test_config_by_dotted_name():
    parser = ConfigParser(
        {
            "network_def": {
                "_target_": "monai_margincal.networks.COPLENet",
                "features": list(SMALL),
                "norm": ["group", {}],
            }
        }
    )
    net = parser.get_parsed_content("network_def")
    assert type(net).__name__ == "COPLENet"
    assert net.bridge0.norm.num_groups == 4


@pytest.mark.parametrize("spatial_shape", [[37, 50], ["16*n", "*"], [2, 32, 48]])
def test_bundle_verifies_inputs_and_outputs(tmp_path, spatial_shape):
    tensor = {"type": "image", "format": "hounsfield", "dtype": "float32", "value_range": [0, 1]}
    meta = {
        "network_data_format": {
            "inputs": {"image": tensor | {"num_channels": 1, "spatial_shape": spatial_shape}},
            "outputs": {"pred": tensor | {"num_channels": 2, "spatial_shape": spatial_shape}},
        }
    }
    config = {"network_def": {"_target_": "monai_margincal.networks.COPLENet", "features": list(SMALL)}}
    ConfigParser.export_config_file(meta, str(tmp_path / "metadata.json"))
    ConfigParser.export_config_file(config, str(tmp_path / "inference.json"))
    verify_net_in_out(
        net_id="network_def",
        meta_file=str(tmp_path / "metadata.json"),
        config_file=str(tmp_path / "inference.json"),
        device="cpu",
        n=2,
        any=24,
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"spatial_dims": 3}, r"spatial_dims must be 2, found 3.*slice by slice"),
        ({"spatial_dims": 1}, r"spatial_dims must be 2, found 1"),
        ({"in_channels": 0}, r"in_channels must be at least 1, found 0"),
        ({"out_channels": 0}, r"out_channels must be at least 1, found 0"),
        ({"slice_batch_size": 0}, r"slice_batch_size must be at least 1, found 0"),
        ({"features": (8, 16, 32, 64)}, r"features must have 5 entries.*found 4: \(8, 16, 32, 64\)"),
        ({"features": (9, 18, 36, 72, 144)}, r"first one even, found \(9, 18, 36, 72, 144\)"),
        ({"features": (8.5, 17, 34, 68, 136)}, r"whole numbers.*found \(8.5,"),
        ({"features": (0, 0, 0, 0, 0)}, r"positive whole numbers.*found \(0,"),
        ({"features": (8, 16, 32, 64, 100)}, r"expected \(8, 16, 32, 64, 128\).*found \(8, 16, 32, 64, 100\)"),
        ({"dropout": (0.1,) * 4}, r"dropout must have 5 entries.*found 4"),
        ({"dropout": (0, 0, 0, 0, 1.0)}, r"\[0, 1\), found"),
        ({"dropout": (0, -0.1, 0, 0, 0)}, r"\[0, 1\), found"),
        ({"norm": "weight"}, r"norm must be one of .*'batch'.*found 'weight'"),
        ({"norm": "layer"}, r"norm must be one of .*found 'layer'"),
        ({"norm": 3}, r"norm must be one of .*found 3"),
        ({"norm": ("group", {"num_groups": 3})}, r"num_groups=3 .*first bridge has 4 channels"),
        ({"act": "swoosh"}, r"act 'swoosh' is not an activation that MONAI knows"),
        ({"act": ("relu", {"slope": 2})}, r"act \('relu'.*not an activation"),
        ({"upsample": "nearest"}, r"upsample must be one of .*'bilinear'.*found 'nearest'"),
    ],
)
def test_bad_options_are_refused_with_found_and_expected(options, message):
    with pytest.raises(ValueError, match=message):
        network(**options)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((1, 3, 32, 32), r"in_channels=1, found an input of shape \(1, 3, 32, 32\) with 3 channels"),
        ((3, 1, 2, 32, 32), None),
        ((1, 4, 1, 32, 32), r"in_channels=1.*with 4 channels"),
        ((1, 32, 32), r"expects \(B, C, H, W\) or \(B, C, D, H, W\), found an input of 3 dimensions"),
        ((1, 1, 1, 1, 32, 32), r"found an input of 6 dimensions"),
    ],
)
def test_bad_inputs_are_refused(shape, message):
    net = network()
    if message is None:
        assert net(torch.rand(shape)).shape == (3, 2, 2, 32, 32)
    else:
        with pytest.raises(ValueError, match=message):
            net(torch.rand(shape))


@pytest.mark.parametrize(
    "x",
    [
        torch.linspace(-1024, 3000, 256).reshape(1, 1, 16, 16),
        torch.arange(256.0).reshape(1, 1, 16, 16),
        torch.full((1, 1, 16, 16), torch.nan),
        torch.full((1, 1, 2, 16, 16), torch.inf),
    ],
    ids=["hounsfield", "8-bit", "nan", "inf"],
)
def test_unscaled_input_warns_once_and_points_at_the_caller(x):
    """Project-MONAI/MONAI#1288, Project-MONAI/research-contributions#4: how to prepare the image is said here."""
    net = network()
    with pytest.warns(UserWarning, match=r"input spans \[.*\], expected values scaled.*1500 and level -650") as caught:
        net(x)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net(x)


@pytest.mark.parametrize(
    "x",
    [
        torch.rand(1, 1, 16, 16),
        torch.rand(1, 1, 16, 16) - 0.5,  # the margin calibration paper's code
        torch.linspace(-2.2, 2.7, 256).reshape(1, 1, 16, 16),  # ImageNet's mean and spread
        torch.linspace(-6, 9, 256).reshape(1, 1, 16, 16),  # z-scores of a CT
    ],
)
def test_scaled_input_does_not_warn(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        network()(x)


def test_warning_survives_a_black_first_window():
    net = network()
    net(torch.zeros(1, 1, 16, 16))
    with pytest.warns(UserWarning, match="expected values scaled"):
        net(torch.full((1, 1, 16, 16), 200.0))


def test_each_module_warns_for_itself_and_looks_at_the_first_calls_only():
    bright = torch.full((1, 1, 16, 16), 200.0)
    for _ in range(2):
        with pytest.warns(UserWarning, match="expected values scaled"):
            network()(bright)
    net = network()
    for _ in range(INPUT_CHECKS):
        net(torch.rand(1, 1, 16, 16))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net(bright)


def test_a_batch_without_samples_keeps_its_shape():
    assert network()(torch.zeros(0, 1, 32, 32)).shape == (0, 2, 32, 32)


def test_outputs_on_real_ct_are_finite():
    image = Path(monai_margincal.__file__).parent / "samples" / "lung_ct" / "images" / "lung1.nii.gz"
    volume = LoadImage(image_only=True, ensure_channel_first=True)(image)
    volume = ScaleIntensityRange(-1400, 100, 0, 1, clip=True)(volume)
    slices = volume.permute(3, 0, 1, 2)[:3].as_tensor()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        logits = network()(slices)
    assert logits.shape == (3, 2, *volume.shape[1:3])
    assert np.isfinite(logits.numpy()).all()
