"""Everything about the engine but the engine itself, which needs an NVIDIA GPU and torch_tensorrt."""

from __future__ import annotations

import csv
import inspect
import sys
import types

import pytest
import torch
from gpu import tensorrt
from monai.bundle import trt_export


def test_a_program_in_the_engine_s_place(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_tensorrt", types.ModuleType("torch_tensorrt"))
    tensorrt.main(["--device", "cpu", "--plane", "32", "--slices", "2", "--output", str(tmp_path)])
    with (tmp_path / "tensorrt.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == ["ours", "TensorRT"]
    assert all(float(row["seconds"]) > 0 for row in rows)
    assert float(rows[1]["different"]) < 1e-3
    assert float(rows[1]["export_seconds"]) > 0
    assert [path.name for path in tmp_path.iterdir()] == ["tensorrt.csv"]


def test_without_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_tensorrt", None)
    with pytest.raises(ImportError, match="needs torch_tensorrt, which cannot be imported"):
        tensorrt.main(["--device", "cpu", "--plane", "32", "--slices", "1", "--output", str(tmp_path)])


def test_the_export_on_a_gpu(monkeypatch, tmp_path):
    """It calls MONAI's function with arguments that the function has, and none goes into the configuration by mistake."""
    calls = []
    monkeypatch.setattr(tensorrt, "trt_export", lambda **arguments: calls.append(arguments))
    tensorrt.export(torch.device("cuda:0"), 512, tmp_path / "x.ts")
    (arguments,) = calls
    assert "override" not in inspect.signature(trt_export).bind(**arguments).arguments
    assert arguments["input_shape"] == [8, 1, 512, 512]
    assert arguments["dynamic_batchsize"] == [1, 8, 8]
    assert arguments["precision"] == "fp16"
