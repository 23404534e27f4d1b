"""Whole-volume inference: an identity network must give the volume back, whatever the planes, windows and batches."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from monai.data import MetaTensor
from monai.inferers import SliceInferer

from monai_margincal.inferers import VolumeSliceInferer

IDENTITY = torch.nn.Identity()

SHAPES = {
    "whole-planes": (1, 1, 64, 48, 5),
    "larger-than-window": (1, 1, 150, 97, 3),
    "one-axis-larger": (1, 1, 100, 20, 4),
    "smaller-than-window": (1, 1, 13, 9, 7),
    "single-slice": (1, 1, 40, 70, 1),
    "1xN-planes": (1, 1, 1, 37, 4),
    "Nx1-planes": (1, 1, 131, 1, 2),
    "one-voxel": (1, 1, 1, 1, 1),
    "batch-of-volumes": (3, 2, 70, 30, 5),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("mode", ["gaussian", "constant"])
@pytest.mark.parametrize("sw_batch_size", [1, 4, 1000])
def test_identity_network_gives_the_volume_back(shape, mode, sw_batch_size):
    """No shift, no zero border (TorchIO issues 813, 96, 181; MONAI pull 5302), no crash of a mode (medic-ai issue 80)."""
    volume = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    before = volume.clone()
    output = VolumeSliceInferer((64, 48), sw_batch_size=sw_batch_size, mode=mode)(volume, IDENTITY)
    assert output.shape == volume.shape
    assert output.dtype == volume.dtype
    assert (output - before).abs().max() < 1e-5
    assert torch.equal(volume, before), "the input was written to"


@settings(deadline=None, max_examples=60)
@given(
    shape=st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(1, 40), st.integers(1, 40), st.integers(1, 4)),
    roi=st.one_of(st.integers(-1, 24), st.tuples(st.integers(-1, 24), st.integers(-1, 24))),
    overlap=st.sampled_from([0.0, 0.25, 0.5, 0.9]),
    batch=st.integers(1, 5),
)
def test_identity_for_any_geometry(shape, roi, overlap, batch):
    volume = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    output = VolumeSliceInferer(roi, sw_batch_size=batch, overlap=overlap)(volume, IDENTITY)
    assert (output - volume).abs().max() < 1e-5


def test_slices_equal_the_network_called_slice_by_slice():
    network = torch.nn.Conv2d(2, 3, 3, padding=1)
    volume = torch.randn(2, 2, 20, 30, 7)
    with torch.no_grad():
        expected = torch.stack([network(volume[..., z]) for z in range(7)], dim=-1)
        output = VolumeSliceInferer(sw_batch_size=3)(volume, network)
    assert torch.allclose(output, expected, atol=1e-6)


def test_windows_equal_those_of_monai():
    """Planes larger than the window: the same windows and weights as MONAI's own slice inferer."""
    network = torch.nn.Conv2d(1, 2, 5, padding=2)
    volume = torch.randn(1, 1, 90, 75, 3)
    with torch.no_grad():
        ours = VolumeSliceInferer((32, 48), sw_batch_size=4, overlap=0.5)(volume, network)
        theirs = SliceInferer(2, (32, 48), sw_batch_size=4, overlap=(0.5, 0.5, 0), mode="gaussian")(volume, network)
    assert torch.allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("roi_size", [(64, 64), (16, 16)], ids=["whole", "windows"])
def test_the_network_never_sees_more_than_asked_for(roi_size):
    """Memory is bounded by the keys; small planes are not padded up to the window."""
    seen = []

    def network(planes):
        seen.append(tuple(planes.shape))
        assert planes.is_contiguous()
        return planes

    VolumeSliceInferer(roi_size, sw_batch_size=6)(torch.rand(1, 1, 40, 24, 8), network)
    assert max(shape[0] for shape in seen) == 6
    assert {shape[2:] for shape in seen} == {(min(40, roi_size[0]), min(24, roi_size[1]))}


@pytest.mark.parametrize("roi_size", [(64, 64), (16, 16)], ids=["whole", "windows"])
def test_half_precision_outputs_are_blended_in_the_input_precision(roi_size):
    """A network under autocast returns half precision; what is small beside a window's edge weight must not be flushed."""
    network = lambda planes: torch.full_like(planes, 1e-4, dtype=torch.float16)  # noqa: E731
    output = VolumeSliceInferer(roi_size)(torch.rand(1, 1, 40, 24, 2), network)
    assert output.dtype == torch.float32
    assert torch.allclose(output, torch.full_like(output, torch.tensor(1e-4, dtype=torch.float16).item()), rtol=1e-5)


@pytest.mark.parametrize("roi_size", [(64, 64), (16, 16)], ids=["whole", "windows"])
def test_autocast(roi_size):
    network = torch.nn.Conv2d(1, 2, 3, padding=1)
    volume = torch.rand(1, 1, 40, 24, 3)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        output = VolumeSliceInferer(roi_size)(volume, network)
    assert output.dtype == torch.float32
    with torch.no_grad():
        assert (output - VolumeSliceInferer(roi_size)(volume, network)).abs().max() < 0.02


@pytest.mark.parametrize("roi_size", [(64, 64), (16, 16)], ids=["whole", "windows"])
def test_metadata_and_device(roi_size):
    affine = torch.diag(torch.tensor([2.0, 3.0, 4.0, 1.0], dtype=torch.float64))
    volume = MetaTensor(torch.rand(1, 1, 40, 24, 3), affine=affine, meta={"filename_or_obj": "scan.nii.gz"})
    output = VolumeSliceInferer(roi_size, device="cpu")(volume, IDENTITY)
    assert isinstance(output, MetaTensor)
    assert output.device.type == "cpu"
    assert output.meta["filename_or_obj"] == "scan.nii.gz"
    assert torch.equal(output.affine, affine)


def test_further_arguments_reach_the_network():
    network = lambda planes, factor, offset=0: planes * factor + offset  # noqa: E731
    volume = torch.rand(1, 1, 8, 8, 2)
    output = VolumeSliceInferer()(volume, network, 2.0, offset=1)
    assert torch.allclose(output, volume * 2 + 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sw_batch_size": 0}, "sw_batch_size must be at least 1, got 0"),
        ({"overlap": 1.0}, r"overlap must lie in \[0, 1\), got 1.0"),
        ({"mode": "cosine"}, "cosine"),
        ({"roi_size": (8, 8, 8)}, "3"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        VolumeSliceInferer(**arguments)


def test_bad_inputs_are_refused():
    inferer = VolumeSliceInferer()
    with pytest.raises(ValueError, match=r"\(B, C, X, Y, Z\).*got \(1, 1, 8, 8\)"):
        inferer(torch.rand(1, 1, 8, 8), IDENTITY)
    with pytest.raises(ValueError, match=r"empty axis, got \(1, 1, 8, 8, 0\)"):
        inferer(torch.rand(1, 1, 8, 8, 0), IDENTITY)
    with pytest.raises(ValueError, match=r"keep the size of planes \(2, 1, 8, 8\), it returned \(2, 1, 4, 4\)"):
        inferer(torch.rand(1, 1, 8, 8, 2), torch.nn.AvgPool2d(2))
    with pytest.raises(TypeError, match="one tensor, it returned tuple"):
        inferer(torch.rand(1, 1, 8, 8, 2), lambda planes: (planes, planes))
