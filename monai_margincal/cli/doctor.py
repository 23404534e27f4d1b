"""Show what this installation can do: versions, devices, GPU kernels, image readers.

Copy its output into a bug report.

  margincal doctor
  margincal doctor --json
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
from importlib import metadata

from ..extras import install_command
from .answer import Answer, add_json_argument

#: extra ("" for what is always needed) -> distribution -> what it is for
_PACKAGES = {
    "": {
        "monai-margincal": "this package",
        "monai": "transforms, inference, bundles",
        "torch": "tensors and networks",
        "numpy": "arrays",
        "pytorch-ignite": "training and evaluation loops",
        "nibabel": "reads NIfTI",
        "pillow": "reads PNG",
        "isal": "unpacks gzip, fast",
        "tqdm": "progress bars",
        "jinja2": "HTML pages",
        "markupsafe": "texts on HTML pages",
    },
    "bundle": {
        "fire": "command line of bundles",
        "itk": "MONAI's default reader",
        "scipy": "finds the lungs",
        "matplotlib": "pictures",
        "tensorboard": "curves of a training",
    },
    "completion": {"shtab": "completes commands in a shell"},
    "dicom": {"pydicom": "reads DICOM series and DICOM SEG", "highdicom": "writes DICOM SEG"},
    "video": {"av": "reads videos, writes films in H.264"},
    "check": {"jsonschema": "checks a bundle's metadata", "packaging": "compares versions"},
    "experiments": {
        "PyYAML": "reads a study",
        "filelock": "several processes on one study",
        "rankseg": "a decoder of studies",
    },
    "federated": {"nvflare": "counts at several sites"},
    "triton": {"triton": "GPU kernels of the loss"},
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    add_json_argument(
        parser,
        {
            "python": "version",
            "platform": "system and machine",
            "cpus": "how many",
            "packages": "distribution -> version (null: not installed) and extra (null: always needed)",
            "threads": "CPU threads of torch",
            "gpus": "a list of name and memory_gib",
            "kernel": "whether the loss has its GPU kernel, and why not",
        },
    )


def run(arguments: argparse.Namespace) -> Answer:
    """Look around."""
    import torch

    where = f"{platform.platform()} ({platform.machine()})"
    lines = [f"Python {platform.python_version()} on {where}, {os.cpu_count()} CPUs"]
    versions: dict[str, dict[str, str | None]] = {}
    for extra, packages in _PACKAGES.items():
        if extra:
            lines.append(f"Extra {extra}: {install_command(extra)}")
        for name, purpose in packages.items():
            version = _version(name)
            versions.setdefault(name, {"version": version, "extra": extra or None})
            lines.append(f"  {name:<16} {version or 'not installed':<16} {purpose}")
    found = [torch.cuda.get_device_properties(k) for k in range(torch.cuda.device_count())]
    gpus = [{"name": gpu.name, "memory_gib": round(gpu.total_memory / 2**30, 1)} for gpu in found]
    kernel = _kernel(bool(gpus))
    lines.append(f"CPU threads of torch: {torch.get_num_threads()}")
    lines += [f"GPU {k}: {gpu['name']}, {gpu['memory_gib']} GiB" for k, gpu in enumerate(gpus)]
    lines += [] if gpus else ["GPU: none that torch can use; everything runs on the CPU"]
    lines.append(f"GPU kernel of the loss: {kernel}")
    data = {
        "python": platform.python_version(),
        "platform": where,
        "cpus": os.cpu_count(),
        "packages": versions,
        "threads": torch.get_num_threads(),
        "gpus": gpus,
        "kernel": kernel,
    }
    return Answer("\n".join(lines), data)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _kernel(has_gpu: bool) -> str:
    if importlib.util.find_spec("triton") is None:
        return "off (triton is not installed); the eager path is used"
    return "on" if has_gpu else "off (no GPU); the eager path is used"
