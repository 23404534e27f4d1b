"""Windows of the size that the weights were trained on, wherever the network is, and a warning where they are not."""

from __future__ import annotations

import warnings

import pytest
import torch

from monai_margincal.inferers import VolumeSliceInferer
from monai_margincal.networks import COPLENet, record_trained_plane


class Watched(torch.nn.Module):
    """Remembers the planes that it is given, and the size that it was trained on."""

    def __init__(self, trained):
        super().__init__()
        self.register_buffer("trained_plane", torch.tensor(trained))
        self.seen = set()

    def forward(self, planes):
        self.seen.add(tuple(planes.shape[2:]))
        return torch.cat([planes, 1 - planes], 1)


def planes_given(network, roi_size=None, plane=(40, 70)):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        output = VolumeSliceInferer(roi_size, sw_batch_size=4)(torch.rand(1, 1, *plane, 3), network)
    assert output.shape == (1, 2, *plane, 3)
    return network.seen, [str(warning.message) for warning in caught]


@pytest.mark.parametrize("plane", [(40, 70), (64, 48), (100, 100), (1, 1)])
def test_by_default_the_windows_are_those_of_training(plane):
    assert planes_given(Watched([64, 48]), plane=plane) == ({(64, 48)}, [])


def test_weights_that_do_not_say_get_whole_planes_up_to_a_size_that_bounds_the_memory():
    assert planes_given(Watched([0, 0])) == ({(40, 70)}, [])
    assert planes_given(Watched([0, 0]), plane=(520, 30)) == ({(512, 30)}, [])


@pytest.mark.parametrize(("roi_size", "window"), [((32, 32), (32, 32)), (0, (40, 70)), ((64, 0), (64, 70))])
def test_another_size_is_taken_with_one_warning_that_names_both(roi_size, window):
    network = Watched([64, 48])
    inferer = VolumeSliceInferer(roi_size)
    volume = torch.rand(1, 1, 40, 70, 1)
    expected = (
        rf"found windows of {window[0]} x {window[1]}, expected 64 x 48, the planes that the weights were trained on"
    )
    with pytest.warns(UserWarning, match=expected) as caught:
        inferer(volume, network)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inferer(volume, network)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert network.seen == {window}


def test_the_same_size_is_no_reason_to_warn():
    assert planes_given(Watched([64, 48]), roi_size=(64, 48)) == ({(64, 48)}, [])
    assert planes_given(Watched([64, 48]), roi_size=(0, 48), plane=(64, 9)) == ({(64, 48)}, [])
    assert planes_given(Watched([0, 0]), roi_size=(32, 32)) == ({(32, 32)}, [])


def test_every_form_of_the_network_knows_its_planes(monkeypatch):
    network = COPLENet(features=(8, 16, 32, 64, 128)).eval()
    record_trained_plane(network, (32, 48))
    volume = torch.rand(1, 1, 40, 24, 2)
    inferer = VolumeSliceInferer()
    expected = VolumeSliceInferer((32, 48))(volume, network)
    assert not torch.equal(
        expected, VolumeSliceInferer((0, 48))(volume, COPLENet(features=(8, 16, 32, 64, 128)).eval())
    )
    forms = {
        "scripted": torch.jit.script(network),
        "traced": torch.jit.trace(network, torch.rand(1, 1, 32, 48)),
        "compiled": torch.compile(network, backend="eager"),
        "parallel": torch.nn.DataParallel(network),
        "compiled and parallel": torch.compile(torch.nn.DataParallel(network), backend="eager"),
    }
    with torch.no_grad():
        for form, program in forms.items():
            assert torch.allclose(inferer(volume, program), expected, atol=1e-5), form


@pytest.mark.parametrize("norm", ["group", "instance", "batch"])
def test_a_window_is_seen_as_the_plane_that_it_was_in_training(norm):
    """Tiled by windows that do not overlap, a large plane gives exactly what its tiles give alone; whole, it does not."""
    torch.manual_seed(0)
    network = COPLENet(features=(8, 16, 32, 64, 128), norm=norm).eval()
    record_trained_plane(network, (32, 48))
    tiles = torch.rand(6, 1, 32, 48)
    plane = tiles.reshape(3, 2, 32, 48).permute(0, 2, 1, 3).reshape(1, 1, 96, 96, 1)
    with torch.no_grad():
        alone = network(tiles).reshape(3, 2, 2, 32, 48).permute(2, 0, 3, 1, 4).reshape(1, 2, 96, 96, 1)
        assert torch.allclose(VolumeSliceInferer(overlap=0)(plane, network), alone, atol=1e-5)
        assert (network(plane[..., 0])[..., None] - alone).abs().max() > 1e-2
