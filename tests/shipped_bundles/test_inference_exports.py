"""The bundle's own export commands, on the weights that it ships, against the network as it stands."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from monai.bundle import ConfigParser
from torch.export import Dim

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
def test_export_program(bundle, tmp_path, network):
    """`torch.export` of the shipped weights with a free batch and plane, saved and loaded, at sizes not exported."""
    dynamic = {0: Dim.DYNAMIC, 2: Dim.DYNAMIC, 3: Dim.DYNAMIC}
    torch.export.save(
        torch.export.export(network, (torch.rand(2, 1, 64, 48),), dynamic_shapes=(dynamic,)), tmp_path / "model.pt2"
    )
    program = torch.export.load(tmp_path / "model.pt2").module()
    for shape in ((1, 1, 64, 64), (3, 1, 50, 70)):
        x = torch.rand(shape, generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            assert (program(x) - network(x)).abs().max() < 1e-4


@pytest.mark.slow
def test_onnx_with_a_free_batch_and_plane(tmp_path, network):
    """What the README gives where the bundle command's fixed size does not do."""
    onnxruntime = pytest.importorskip("onnxruntime")
    dynamic = {0: Dim.DYNAMIC, 2: Dim.DYNAMIC, 3: Dim.DYNAMIC}
    example = (torch.rand(2, 1, 64, 48),)
    torch.onnx.export(network, example, tmp_path / "model.onnx", dynamo=True, dynamic_shapes=(dynamic,), verbose=False)
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    for shape in ((1, 1, 64, 64), (3, 1, 50, 70), (2, 1, 512, 512)):
        x = torch.rand(shape, generator=torch.Generator().manual_seed(0))
        (found,) = session.run(None, {given.name: x.numpy()})
        with torch.no_grad():
            assert np.abs(found - network(x).numpy()).max() < 1e-4


def test_the_tensorrt_config_resolves_up_to_the_program(bundle, command, tmp_path):
    """Without the program and without torch_tensorrt: one line about the first thing that is missing."""
    names = ("inference", "inference_trt")
    missing = command(tmp_path, names, expect=1, trt_file=tmp_path / "none.ts", features=None)
    last = missing.output.splitlines()[-1]
    assert last.startswith("error: ")
    assert f"no TensorRT program '{tmp_path}/none.ts': make it with" in last
    parser = ConfigParser()
    parser.read_config([str(bundle / "configs" / f"{name}.json") for name in names])
    parser.update(
        {"bundle_root": str(bundle), "device": "cpu", "network": "$torch.nn.Identity()", "checkpoint": "none.pt"}
    )
    evaluator = parser.get_parsed_content("evaluator")
    assert isinstance(evaluator.network, torch.nn.Identity)
    assert not evaluator.amp


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
