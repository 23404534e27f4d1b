"""The size of the planes that weights were trained on travels with them, and files without it load as before."""

from __future__ import annotations

import copy
import io

import pytest
import torch
from ignite.engine import Engine
from monai.handlers import CheckpointLoader
from monai.networks import copy_model_state
from networks.golden_weights import golden_weights

from monai_margincal.decisions.weights_digest import weights_digest
from monai_margincal.networks import (
    COPLENet,
    COPLENetCheckpointLoader,
    convert_coplenet_state_dict,
    coplenet_config_of,
    record_trained_plane,
    trained_plane,
)


def network(plane=None):
    made = COPLENet(features=(8, 16, 32, 64, 128), norm="group")
    if plane is not None:
        record_trained_plane(made, plane)
    return made


@pytest.fixture
def weights(tmp_path):
    torch.save(network((96, 64)).state_dict(), tmp_path / "model.pt")
    return str(tmp_path / "model.pt")


@pytest.mark.parametrize("loader", [CheckpointLoader, COPLENetCheckpointLoader])
def test_handlers_load_it(weights, loader):
    target = network()
    loader(weights, {"network": target}, map_location="cpu")(Engine(lambda *_: None))
    assert trained_plane(target) == (96, 64)


def test_the_file_is_a_plain_state_dict_that_monai_copies(weights):
    content, target = torch.load(weights, weights_only=True), network()
    assert all(isinstance(value, torch.Tensor) for value in content.values())
    copy_model_state(target, content)
    assert trained_plane(target) == (96, 64)


@pytest.mark.parametrize("strict", [True, False])
def test_weights_that_do_not_say_replace_what_the_network_said(strict):
    old = network().state_dict()
    del old["trained_plane"]
    target = network((96, 64))
    assert target.load_state_dict(old, strict=strict).missing_keys == []
    assert trained_plane(target) is None


def test_a_network_inside_another(weights):
    outer = torch.nn.Sequential(network())
    outer.load_state_dict({f"0.{name}": value for name, value in torch.load(weights, weights_only=True).items()})
    assert trained_plane(outer[0]) == (96, 64)


@pytest.mark.parametrize("name", ["monai02", "authors"])
def test_published_weights_say_nothing(name):
    weights = golden_weights(name)
    converted = COPLENet(**coplenet_config_of(weights))
    converted.load_state_dict(convert_coplenet_state_dict(weights))
    assert trained_plane(converted) is None


def test_our_own_layout_comes_back_with_it():
    content = network((96, 64)).state_dict()
    for stored in (content, {name: value.half() for name, value in content.items()}):
        assert torch.equal(convert_coplenet_state_dict(stored)["trained_plane"], torch.tensor([96, 64]))


def test_it_is_a_note_beside_the_weights_and_none_of_them():
    """What was fitted for weights holds for them whether or not their file says on which planes they were trained."""
    weights = network().half().state_dict()
    noted = {**weights, "trained_plane": torch.tensor([96.0, 64.0]).half()}
    assert weights_digest(convert_coplenet_state_dict(noted)) == weights_digest(convert_coplenet_state_dict(weights))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64, torch.int32])
def test_weights_stored_in_another_precision(dtype):
    target = network()
    target.load_state_dict({name: value.to(dtype) for name, value in network((512, 333)).state_dict().items()})
    assert trained_plane(target) == (512, 333)


def test_an_average_of_equal_sizes_is_that_size():
    """Federated averaging: 7 * 256 * (1 / 7) need not be 256."""
    content = network((256, 256)).state_dict()
    content["trained_plane"] = torch.tensor([255.99999999999997, 256.00000000000006], dtype=torch.float64)
    target = network()
    target.load_state_dict(content)
    assert trained_plane(target) == (256, 256)


def test_conversions_of_the_network_keep_it():
    original = network((512, 333))
    assert (
        trained_plane(copy.deepcopy(original).half()) == trained_plane(copy.deepcopy(original).double()) == (512, 333)
    )
    assert trained_plane(copy.deepcopy(original)) == (512, 333)
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(original.eval()), file)
    file.seek(0)
    assert trained_plane(torch.jit.load(file)) == (512, 333)


def test_it_is_recorded_through_wrappers():
    inner = network()
    record_trained_plane(torch.nn.DataParallel(inner), [32, 48])
    record_trained_plane(torch.compile(inner, backend="eager"), [32, 64])
    assert trained_plane(inner) == (32, 64)


@pytest.mark.parametrize("other", [torch.nn.Conv2d(1, 1, 1), torch.nn.Identity(), lambda planes: planes, None])
def test_of_other_networks_nothing_is_known(other):
    if isinstance(other, torch.nn.Module):
        before = set(other.state_dict())
        record_trained_plane(other, (8, 8))
        assert set(other.state_dict()) == before
    assert trained_plane(other) is None


@pytest.mark.parametrize("size", [(64,), (64, 64, 64), (0, 64), (64, -1), (64, 0.5), (True, 64)])
def test_what_is_no_size(size):
    with pytest.raises(ValueError, match=r"trained plane: found \[.*\], expected two whole numbers of voxels"):
        record_trained_plane(network(), size)
