"""The bundle's own export commands, on the weights that it ships, against the network as it stands."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from monai_margincal.networks import COPLENet


@pytest.fixture(scope="module")
def network(bundle):
    network = COPLENet(features=(16, 32, 64, 128, 256), norm="group").eval()
    network.load_state_dict(torch.load(bundle / "models" / "model.pt", weights_only=True))
    return network


def export(bundle, tmp_path, kind, filename, *flags):
    configs = bundle / "configs"
    line = [
        sys.executable,
        "-m",
        "monai.bundle",
        kind,
        "--net_id",
        "network_def",
        "--filepath",
        str(tmp_path / filename),
    ]
    line += ["--ckpt_file", str(bundle / "models" / "model.pt"), "--meta_file", str(configs / "metadata.json")]
    line += ["--config_file", str(configs / "inference.json"), "--device", "cpu", *flags]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return tmp_path / filename


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("--use_trace", "True")], ids=["script", "trace"])
def test_ckpt_export(bundle, tmp_path, network, flags):
    """Project-MONAI/MONAI#8632, londonaicentre/FLIP#1019, #1020: one file with its configs, whatever form clients still take."""
    path = export(bundle, tmp_path, "ckpt_export", "model.ts", *flags)
    extras = {"metadata.json": "", "inference.json": ""}
    program = torch.jit.load(str(path), _extra_files=extras)
    assert all(extras.values()), "clients read the configs from the file"
    for shape in ((1, 1, 64, 64), (3, 1, 50, 70)):
        x = torch.rand(shape, generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            assert (program(x) - network(x)).abs().max() < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("--use_trace", "True")], ids=["script", "trace"])
def test_onnx_export(bundle, tmp_path, network, flags):
    onnxruntime = pytest.importorskip("onnxruntime")
    path = export(bundle, tmp_path, "onnx_export", "model.onnx", *flags)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    shape = [size if isinstance(size, int) else 2 for size in given.shape]
    x = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    (found,) = session.run(None, {given.name: x.numpy()})
    with torch.no_grad():
        assert np.abs(found - network(x).numpy()).max() < 1e-4
