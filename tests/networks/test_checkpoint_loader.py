"""Weights for inference: the right ones, or one line that says what was found and what to do."""

from __future__ import annotations

import pytest
import torch
from ignite.engine import Engine

from monai_margincal.networks import COPLENet, COPLENetCheckpointLoader

SMALL = (8, 16, 32, 64, 128)


def network(**options):
    return COPLENet(**{"features": SMALL, "norm": "group", **options})


def load(path, target):
    advice = "--weights names the file"
    load = COPLENetCheckpointLoader(str(path), {"network": target}, advice=advice, map_location="cpu")
    load(Engine(lambda *_: None))


def test_loads_strictly(tmp_path):
    source, target = network(), network()
    torch.save(source.state_dict(), tmp_path / "w.pt")
    load(tmp_path / "w.pt", target)
    assert all(
        torch.equal(a, b) for a, b in zip(source.state_dict().values(), target.state_dict().values(), strict=True)
    )


@pytest.mark.parametrize("wrapper", ["state_dict", "model", "network"])
def test_checkpoints_and_half_precision_are_understood(tmp_path, wrapper):
    source, target = network(), network()
    torch.save({wrapper: {k: v.half() for k, v in source.state_dict().items()}, "epoch": 3}, tmp_path / "w.pt")
    load(tmp_path / "w.pt", target)
    assert target.out_conv.weight.dtype == torch.float32
    assert torch.allclose(source.out_conv.weight, target.out_conv.weight, atol=1e-3)


def test_a_missing_file_is_named_and_what_to_do(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"weights not found.*none\.pt.*train first.*convert-weights.*--weights"
    ):
        load(tmp_path / "none.pt", network())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": (16, 32, 64, 128, 256)}, r"features \[16, 32, 64, 128, 256\], expected \[8, 16, 32, 64, 128\]"),
        ({"norm": "batch"}, r"norm .*batch.*expected .*group"),
        ({"out_channels": 3}, r"out_channels 3, expected 2.*the weights' own values \(--weights"),
    ],
)
def test_weights_of_another_network_are_refused(tmp_path, options, message):
    torch.save(network(**options).state_dict(), tmp_path / "w.pt")
    target = network()
    before = target.out_conv.weight.clone()
    with pytest.raises(
        ValueError, match=rf"w\.pt: found weights of another network than configured: .*{message}"
    ) as raised:
        load(tmp_path / "w.pt", target)
    assert "\n" not in str(raised.value)
    assert torch.equal(target.out_conv.weight, before)


def test_no_weights_at_all(tmp_path):
    (tmp_path / "text.pt").write_text("hello")
    with pytest.raises(ValueError, match=r"text\.pt: found no file of plain tensors"):
        load(tmp_path / "text.pt", network())
    torch.save(torch.nn.Conv2d(1, 1, 1).state_dict(), tmp_path / "conv.pt")
    with pytest.raises(ValueError, match=r"conv\.pt: found weights of no COPLE-Net"):
        load(tmp_path / "conv.pt", network())
    with pytest.raises(ValueError, match="exactly one network"):
        COPLENetCheckpointLoader("w.pt", {"a": network(), "b": network()})
