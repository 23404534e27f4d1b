"""What a run takes place on, printed as one line of JSON; what is not installed is empty."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import subprocess
import time
from typing import Any


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _driver() -> str:
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.splitlines()[0].strip() if done.stdout.strip() else ""


def facts() -> dict[str, Any]:
    """Name and memory of the card (empty without one), versions, date."""
    found: dict[str, Any] = {"card": "", "memory_gib": 0.0, "driver": _driver(), "torch": "", "cuda": ""}
    try:
        import torch
    except ImportError:
        pass
    else:
        found |= {"torch": torch.__version__, "cuda": torch.version.cuda or ""}
        if torch.cuda.is_available():
            memory = torch.cuda.get_device_properties(0).total_memory
            found |= {"card": torch.cuda.get_device_name(0), "memory_gib": round(memory / 2**30, 1)}
    found |= {name: _version(name) for name in ("triton", "monai", "torch_tensorrt")}
    return {**found, "python": platform.python_version(), "date": time.strftime("%Y-%m-%d")}


if __name__ == "__main__":
    print(json.dumps(facts()))
