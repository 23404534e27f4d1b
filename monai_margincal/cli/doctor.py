"""Show what this installation can do: versions, devices, GPU kernels, image readers.

Copy its output into a bug report.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
from importlib import metadata

from ..extras import install_command

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
    """The verb has no arguments."""


def run(arguments: argparse.Namespace) -> None:
    """Print the report."""
    import torch

    print(f"Python {platform.python_version()} on {platform.platform()} ({platform.machine()}, {os.cpu_count()} CPUs)")
    for extra, packages in _PACKAGES.items():
        if extra:
            print(f"Extra {extra}: {install_command(extra)}")
        for name, purpose in packages.items():
            print(f"  {name:<16} {_version(name):<16} {purpose}")
    print(f"CPU threads of torch: {torch.get_num_threads()}")
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            device = torch.cuda.get_device_properties(index)
            print(f"GPU {index}: {device.name}, {device.total_memory / 2**30:.1f} GiB")
    else:
        print("GPU: none that torch can use; everything runs on the CPU")
    print(f"GPU kernel of the loss: {_kernel(torch.cuda.is_available())}")


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _kernel(has_gpu: bool) -> str:
    if importlib.util.find_spec("triton") is None:
        return "off (triton is not installed); the eager path is used"
    return "on" if has_gpu else "off (no GPU); the eager path is used"
