"""Whole-volume inference: an identity network must give the volume back, whatever the planes, windows and batches."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from monai.data import MetaTensor
from monai.inferers import SliceInferer
from monai.transforms import SpatialPad

from monai_margincal.decisions import ClassOffsets
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
    """No shift, no zero border, no crash of a mode.

    TorchIO-project/torchio#813, #832, #96, #181, #1001; Project-MONAI/MONAI#5302; innat/medic-ai#80 (also of one slice, 2-D).
    """
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


@pytest.mark.parametrize("roi_size", [(64, 64), (16, 12)], ids=["whole", "windows"])
@pytest.mark.parametrize("decide", [False, True])
def test_frames_are_planes_of_one_slice_each(roi_size, decide):
    """(B, C, X, Y), batch by batch, equals the same planes as volumes of a single slice."""
    network = torch.nn.Conv2d(3, 4, 3, padding=1)
    frames = MetaTensor(torch.randn(5, 3, 30, 20), meta={"filename_or_obj": "frame.png"})
    inferer = VolumeSliceInferer(roi_size, sw_batch_size=2, decide=decide)
    with torch.no_grad():
        output = inferer(frames, network)
        expected = inferer(frames.as_tensor()[..., None], network)[..., 0]
    assert output.shape == (5, 1 if decide else 4, 30, 20)
    assert torch.allclose(output.as_tensor().float(), expected.float(), atol=1e-6)
    assert output.meta["filename_or_obj"] == "frame.png"


def test_windows_equal_those_of_monai():
    """Planes larger than the window: the same windows and weights as MONAI's own slice inferer."""
    network = torch.nn.Conv2d(1, 2, 5, padding=2)
    volume = torch.randn(1, 1, 90, 75, 3)
    with torch.no_grad():
        ours = VolumeSliceInferer((32, 48), sw_batch_size=4, overlap=0.5)(volume, network)
        theirs = SliceInferer(2, (32, 48), sw_batch_size=4, overlap=(0.5, 0.5, 0), mode="gaussian")(volume, network)
    assert torch.allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("roi_size", [(64, 64), (16, 16), (64, 16), 0, (-1, 16)])
def test_the_network_sees_windows_of_one_size_and_never_more_of_them_than_asked_for(roi_size):
    seen = []

    def network(planes):
        seen.append(tuple(planes.shape))
        assert planes.is_contiguous()
        return planes

    VolumeSliceInferer(roi_size, sw_batch_size=6)(torch.rand(1, 1, 40, 24, 8), network)
    assert max(shape[0] for shape in seen) == 6
    rois = (roi_size,) * 2 if isinstance(roi_size, int) else roi_size
    assert {shape[2:] for shape in seen} == {tuple(r if r > 0 else s for r, s in zip(rois, (40, 24), strict=True))}


def test_a_small_plane_lies_in_its_window_as_training_pads_it():
    volume, seen = torch.rand(1, 2, 37, 20, 1), []
    VolumeSliceInferer((64, 49))(volume, lambda planes: seen.append(planes) or planes)
    assert torch.equal(seen[0][0], SpatialPad((64, 49))(volume[0, ..., 0]).as_tensor())


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
        ({"sw_batch_size": 0}, "sw_batch_size must be at least 1, found 0"),
        ({"overlap": 1.0}, r"overlap must lie in \[0, 1\), found 1.0"),
        ({"mode": "cosine"}, "cosine"),
        ({"roi_size": (8, 8, 8)}, "3"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        VolumeSliceInferer(**arguments)


def test_bad_inputs_are_refused():
    inferer = VolumeSliceInferer()
    with pytest.raises(ValueError, match=r"\(B, C, X, Y, Z\).*found \(1, 8, 8\)"):
        inferer(torch.rand(1, 8, 8), IDENTITY)
    with pytest.raises(ValueError, match=r"empty axis, found \(1, 1, 8, 8, 0\)"):
        inferer(torch.rand(1, 1, 8, 8, 0), IDENTITY)
    with pytest.raises(ValueError, match=r"keep the size of planes \(2, 1, 8, 8\), it returned \(2, 1, 4, 4\)"):
        inferer(torch.rand(1, 1, 8, 8, 2), torch.nn.AvgPool2d(2))
    with pytest.raises(TypeError, match="one tensor, it returned tuple"):
        inferer(torch.rand(1, 1, 8, 8, 2), lambda planes: (planes, planes))


@pytest.mark.parametrize("roi_size", [(64, 64), (16, 16)], ids=["whole", "windows"])
@pytest.mark.parametrize("channels_last", [False, True])
def test_decisions_are_the_largest_logits(roi_size, channels_last):
    """tutorials issue 433: one channel, uint8."""
    network = torch.nn.Conv2d(1, 3, 3, padding=1)
    volume = torch.randn(2, 1, 40, 24, 7, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        logits = VolumeSliceInferer(roi_size, sw_batch_size=3)(volume, network)
        inferer = VolumeSliceInferer(roi_size, sw_batch_size=3, decide=True, channels_last=channels_last)
        decided = inferer(volume, network)
    assert decided.dtype == torch.uint8
    assert decided.shape == (2, 1, 40, 24, 7)
    assert (decided[:, 0] != logits.argmax(1)).float().mean() < 1e-4  # layouts may round differently


def test_the_first_of_equal_logits_is_decided():
    decided = VolumeSliceInferer(decide=True)(torch.rand(1, 4, 5, 5, 2), lambda planes: torch.zeros_like(planes))
    assert (decided == 0).all()


@pytest.mark.parametrize("roi_size", [(64, 64), (16, 16)], ids=["whole", "windows"])
def test_channels_last_reaches_the_network(roi_size):
    seen = []

    def network(planes):
        seen.append(planes.is_contiguous(memory_format=torch.channels_last))
        return planes

    VolumeSliceInferer(roi_size, channels_last=True)(torch.rand(1, 3, 40, 24, 3), network)
    assert seen
    assert all(seen)


def test_decisions_and_thousand_slices_need_memory_for_one_batch_only():
    """The largest tensor beside input and output is one batch of logits, whatever the number of slices."""
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal largest
            result = func(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor) and result.dtype.is_floating_point and result._base is None:
                largest = max(largest, result.numel())
            return result

    volume = torch.rand(1, 1, 16, 16, 1000)
    with Watch():
        output = VolumeSliceInferer(sw_batch_size=8, decide=True)(volume, lambda p: torch.cat([p, 1 - p], 1))
    assert output.shape == volume.shape
    assert torch.equal(output == 1, volume < 0.5)
    assert largest <= 8 * 2 * 16 * 16


@pytest.mark.parametrize("form", ["offsets", "numbers", "file"])
def test_it_decides_with_offsets_as_whole_logits_would(form, tmp_path):
    offsets = ClassOffsets([0.0, 1.5, -0.5])
    offsets.to_json(tmp_path / "decision.json")
    given = {"offsets": offsets, "numbers": [0.0, 1.5, -0.5], "file": str(tmp_path / "decision.json")}[form]
    network = torch.nn.Conv2d(1, 3, 3, padding=1)
    volume = torch.randn(2, 1, 20, 18, 5)
    with torch.no_grad():
        decided = VolumeSliceInferer(sw_batch_size=2, decide=given)(volume, network)
        logits = VolumeSliceInferer(sw_batch_size=2)(volume, network)
    assert decided.dtype == torch.uint8
    assert torch.equal(decided[:, 0].long(), offsets(logits))
    assert not torch.equal(decided, VolumeSliceInferer(decide=True)(volume, network))
    with pytest.raises(ValueError, match="expected 2 classes"):
        VolumeSliceInferer(decide=[0.0, 1.0])(volume, network)


def test_a_network_of_one_logit_is_decided_at_zero():
    """What is trained with a sigmoid: class 1 against 0."""
    volume = torch.randn(1, 1, 6, 5, 4)
    decided = VolumeSliceInferer(decide=True)(volume, IDENTITY)
    assert decided.dtype == torch.uint8
    assert torch.equal(decided == 1, volume > 0)
    shifted = VolumeSliceInferer(decide=[0.0, 0.75])(volume, IDENTITY)
    assert torch.equal(shifted == 1, volume + 0.75 > 0)
    with pytest.raises(ValueError, match="expected 3 classes"):
        VolumeSliceInferer(decide=[0.0, 1.0, 1.0])(volume, IDENTITY)
