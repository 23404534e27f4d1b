"""What is missing is named: the program, or the package that it needs."""

from __future__ import annotations

import sys
import types

import pytest
import torch

from monai_margincal.inferers import load_tensorrt_program


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "model_trt.ts"
    torch.jit.save(torch.jit.script(torch.nn.Conv2d(1, 2, 1)), str(path))
    return path


def test_a_missing_program_is_named_first(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no TensorRT program '.*none\.ts': make it with .* trt_export"):
        load_tensorrt_program(tmp_path / "none.ts", "cpu")


def test_a_missing_package_is_named(program, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_tensorrt", None)
    with pytest.raises(ImportError, match=r"model_trt\.ts needs torch_tensorrt, .*pip install torch_tensorrt"):
        load_tensorrt_program(program, "cpu")


def test_with_both_the_program_runs(program, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_tensorrt", types.ModuleType("torch_tensorrt"))
    assert load_tensorrt_program(str(program), "cpu")(torch.zeros(1, 1, 3, 3)).shape == (1, 2, 3, 3)
