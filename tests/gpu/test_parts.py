"""The real run keeps its eight minutes, and every command is one that its script understands."""

from __future__ import annotations

import argparse
import functools
import importlib.util
import sys
from pathlib import Path

import pytest
from gpu import checks, tensorrt
from gpu.parts import CHECKS, SHAPES, parts

EIGHT_MINUTES = 480
#: with all torch imports, the facts about the machine are there after so many seconds at the latest
FACTS = 10
REAL = {f"{part.name}, {step.name}": step for part in parts(small=False) for step in part.steps}
SMALL = {f"{part.name}, {step.name}": step for part in parts(small=True) for step in part.steps}


@functools.cache
def script(path: str):
    spec = importlib.util.spec_from_file_location(f"{Path(path).stem}_of_a_run", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Understood(Exception):
    """The arguments have been parsed."""


@pytest.mark.parametrize("step", [*REAL.values(), *SMALL.values()], ids=[*REAL, *(f"small {name}" for name in SMALL)])
def test_commands_are_understood(step, monkeypatch, tmp_path):
    first, *arguments = step.arguments
    module = {"-m": {"gpu.checks": checks, "gpu.tensorrt": tensorrt}.get(arguments[0])}.get(first) or script(first)
    arguments = [*(arguments[1:] if first == "-m" else arguments), "--output", str(tmp_path)]
    original = argparse.ArgumentParser.parse_args

    def parse(self, given=None):
        found = original(self, given)
        assert str(found.output) == str(tmp_path)
        raise Understood

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse)
    monkeypatch.setattr(sys, "argv", ["script", *arguments])
    with pytest.raises(Understood):
        module.main() if Path(first).stem == "inference" else module.main(arguments)


def test_eight_minutes():
    assert sum(part.seconds for part in parts(small=False)) + FACTS <= EIGHT_MINUTES


def test_names_are_those_of_the_scripts():
    assert list(checks.RUN) == list(CHECKS)
    loss = script(next(step for name, step in REAL.items() if name.startswith("loss")).arguments[0])
    assert sorted(SHAPES) == sorted(loss.GPU_SHAPES)
    ways = [
        step.arguments[-1] for name, step in REAL.items() if name.startswith("inference") and "--ways" in step.arguments
    ]
    assert sorted(ways) == ["compiled", "ours", "reference"]


def test_only_tensorrt_may_be_absent():
    assert [part.name for part in parts(small=False) if part.optional] == ["tensorrt"]
