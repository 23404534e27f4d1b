"""Weights with offsets in them: the largest logit is what the offsets decide, in every program that the network leaves in."""

from __future__ import annotations

import io

import onnxruntime
import pytest
import torch
from monai.networks.nets import DynUNet, UNet

from monai_margincal.bundle import bundle_dir
from monai_margincal.decisions import ClassOffsets
from monai_margincal.decisions.bake import baked_offsets, baked_weights
from monai_margincal.networks import COPLENet
from monai_margincal.samples import sample_dir

CONV = torch.nn.Conv2d
OFFSETS = ClassOffsets([0.0, 1.3], ["background", "lesion"])


@pytest.fixture(scope="module")
def shipped():
    """The bundle's network with its own weights, and three slices of a real CT."""
    nibabel = pytest.importorskip("nibabel")
    network = COPLENet(features=(16, 32, 64, 128, 256), norm="group").eval()
    state = torch.load(f"{bundle_dir('covid19_ct_lesion_coplenet')}/models/model.pt", weights_only=True)
    network.load_state_dict(state)
    scan = torch.from_numpy(nibabel.load(f"{sample_dir('lung_ct')}/images/lung2.nii.gz").get_fdata()).float()
    planes = ((scan[64:160, 48:144, 8:11] + 1400) / 1500).clamp(0, 1).movedim(-1, 0)[:, None]
    with torch.no_grad():
        return state, planes, network(planes)


def scripted(network, planes):
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(network), buffer)
    buffer.seek(0)
    return torch.jit.load(buffer)(planes)


def by_onnx(network, planes):
    buffer = io.BytesIO()
    torch.onnx.export(network, (planes,), buffer, dynamo=False, input_names=["planes"])
    session = onnxruntime.InferenceSession(buffer.getvalue(), providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(None, {"planes": planes.numpy()})[0])


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(
    "run", [lambda network, planes: network(planes), scripted, by_onnx], ids=["eager", "TorchScript", "ONNX"]
)
def test_every_program_decides_alike_with_the_plain_largest_logit(run, shipped):
    state, planes, logits = shipped
    expected = OFFSETS(logits)
    baked, name = baked_weights(state, OFFSETS)
    network = COPLENet(features=(16, 32, 64, 128, 256), norm="group").eval()
    network.load_state_dict(baked)
    with torch.no_grad():
        found = run(network, planes).argmax(1)
    assert name == "out_conv.bias"
    assert (expected != logits.argmax(1)).sum() > 20, "the offsets do something here"
    # sums that are equal up to rounding, and another program adds in another order
    undecided = (logits[:, 1] + 1.3 - logits[:, 0]).abs() < 1e-3
    assert undecided.float().mean() < 1e-3
    assert torch.equal(found[~undecided], expected[~undecided])


def test_nothing_else_changes_and_half_precision_does_not_round_the_offset(shipped):
    state, _, _ = shipped
    before = {name: value.clone() for name, value in state.items()}
    baked, name = baked_weights(state, OFFSETS)
    assert state[name].dtype == torch.float16
    assert torch.equal(baked[name], before[name].float() + torch.tensor([0.0, 1.3]))
    assert all(torch.equal(state[key], value) for key, value in before.items())
    assert all(baked[key] is state[key] for key in state if key != name)


def test_the_mark_survives_a_file_and_loading_it_strictly(tmp_path):
    network = COPLENet(features=(8, 16, 32, 64, 128))
    torch.save(baked_weights(network.state_dict(), OFFSETS)[0], tmp_path / "baked.pt")
    state = torch.load(tmp_path / "baked.pt", weights_only=True)
    network.load_state_dict(state, strict=True)
    assert baked_offsets(state) == {"offsets": [0.0, 1.3], "bias": "out_conv.bias"}
    with pytest.raises(ValueError, match=r"found weights with the offsets \[0\.0, 1\.3\] in 'out_conv\.bias' already"):
        baked_weights(state, OFFSETS)


def test_one_logit_gets_the_offset_of_class_1():
    network = torch.nn.Sequential(torch.nn.Conv3d(1, 4, 3), torch.nn.Conv3d(4, 1, 1))
    baked, name = baked_weights(network.state_dict(), OFFSETS)
    planes = torch.rand(1, 1, 8, 8, 8)
    with torch.no_grad():
        logit = network(planes)
        network.load_state_dict(baked)
        assert torch.allclose(network(planes), logit + 1.3, atol=1e-6)
    assert name == "1.bias"


@pytest.mark.parametrize("make", [
    lambda: UNet(2, 1, 2, channels=(4, 8), strides=(2,)),
    lambda: DynUNet(2, 1, 2, [3, 3, 3], [1, 2, 2], [2, 2], filters=[4, 8, 8]),
], ids=["UNet", "DynUNet"])  # fmt: skip
def test_networks_of_monai(make):
    """One that ends with a transposed convolution, and one that ends with a block of its own."""
    torch.manual_seed(0)
    network = make().eval()
    state, image = network.state_dict(), torch.rand(1, 1, 32, 32)
    baked, _ = baked_weights(state, OFFSETS)
    with torch.no_grad():
        before = network(image)
        network.load_state_dict(baked)
        moved = network(image) - before
    assert torch.allclose(moved, torch.tensor([0.0, 1.3]).reshape(1, 2, 1, 1).expand_as(moved), atol=1e-5)


@pytest.mark.parametrize(
    ("layers", "bias", "message"),
    [
        (
            [CONV(1, 2, 1), CONV(2, 2, 1)],
            None,
            r"found 2 biases of convolutions .*\['0\.bias', '1\.bias'\], expected one",
        ),
        ([CONV(1, 3, 1)], None, r"found 0 biases .* of 2 classes, the last biases being \['0\.bias \(3,\)'\]"),
        ([CONV(1, 2, 1, bias=False), torch.nn.BatchNorm2d(2)], None, "found 0 biases of convolutions"),
        ([CONV(1, 2, 1)], "head.bias", r"found no 'head\.bias' in the weights, expected one of \['0\.bias'\]"),
        (
            [CONV(1, 3, 1), CONV(3, 2, 1)],
            "0.bias",
            r"0\.bias: found a bias of shape \(3,\), expected \(2,\) or \(1,\) for 2",
        ),
    ],
)
def test_a_bias_that_cannot_be_meant(layers, bias, message):
    with pytest.raises(ValueError, match=message):
        baked_weights(torch.nn.Sequential(*layers).state_dict(), OFFSETS, bias)


def test_one_of_several_by_name():
    network = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 1), torch.nn.Conv2d(2, 2, 1))
    baked, name = baked_weights(network.state_dict(), OFFSETS, "1.bias")
    assert name == "1.bias"
    assert torch.equal(baked["0.bias"], network.state_dict()["0.bias"])
