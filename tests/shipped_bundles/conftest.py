"""The CT lesion bundle as a user runs it: `python -m monai.bundle` in a folder that is not the bundle's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import monai
import pytest
import torch

BUNDLE = Path(__file__).resolve().parents[2] / "bundles" / "covid19_ct_lesion_coplenet"

#: a network of 0.16 million parameters, so that a run is bounded by imports
SMALL = {"features": [8, 16, 32, 64, 128], "num_workers": 0}


@dataclass
class Run:
    """What one command did."""

    returncode: int
    output: str
    cwd: Path


@pytest.fixture(scope="session")
def bundle() -> Path:
    return BUNDLE


@pytest.fixture(scope="session")
def configs() -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text()) for path in (BUNDLE / "configs").glob("*.json")}


@pytest.fixture(scope="session")
def command() -> Callable[..., Run]:
    """Run `python -m monai.bundle run` with the named configs in ``cwd``; what it writes goes below ``cwd``."""

    def run(cwd: Path, configs: tuple[str, ...], expect: int = 0, bundle: Path = BUNDLE, **overrides: Any) -> Run:
        files = [str(bundle / "configs" / f"{name}.json") for name in configs]
        arguments = {
            "config_file": files[0] if len(files) == 1 else files,
            "bundle_root": str(bundle),
            "output_dir": "eval",
            "ckpt_dir": "models",
            **SMALL,
            **overrides,
        }
        line = [sys.executable, "-W", "always", "-m", "monai.bundle", "run"]
        for key, value in arguments.items():
            line += [f"--{key}", str(value)] if value is not None else []
        done = subprocess.run(
            line,
            cwd=cwd,
            env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == expect, f"exit code {done.returncode}, expected {expect}:\n{done.stdout}"
        ours = [text for text in done.stdout.splitlines() if "Warning:" in text and "margincal" in text]
        assert not ours, ours
        return Run(done.returncode, done.stdout, cwd)

    return run


@pytest.fixture
def workflow(tmp_path) -> Callable[..., monai.bundle.ConfigWorkflow]:
    """Load the named configs in this process and initialise them; what they write goes below ``tmp_path``."""

    def load(configs: tuple[str, ...], kind: str, **overrides: Any) -> monai.bundle.ConfigWorkflow:
        loaded = monai.bundle.ConfigWorkflow(
            workflow_type=kind,
            config_file=[str(BUNDLE / "configs" / f"{name}.json") for name in configs],
            logging_file=False,
            **{
                "bundle_root": str(BUNDLE),
                "output_dir": str(tmp_path / "eval"),
                "ckpt_dir": str(tmp_path / "models"),
                "device": "cpu",
                **SMALL,
                **overrides,
            },
        )
        loaded.initialize()
        return loaded

    yield load
    monai.utils.set_determinism(None)
    torch.use_deterministic_algorithms(False)
