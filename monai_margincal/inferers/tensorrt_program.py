"""A network that TensorRT has compiled, or a clear error about what is missing: the file or the package."""

from __future__ import annotations

import errno
import importlib
import os
from pathlib import Path

import torch


def load_tensorrt_program(
    path: str | os.PathLike[str], device: str | torch.device = "cuda:0"
) -> torch.jit.ScriptModule:
    """Load what ``python -m monai.bundle trt_export`` wrote.

    The file refers to classes that ``torch_tensorrt`` registers when it is imported; without them PyTorch says only that a
    class is unknown.

    Args:
        path: the exported program.
        device: where it is loaded.

    Raises:
        FileNotFoundError: there is no such file; the message says how to make it.
        ImportError: ``torch_tensorrt`` cannot be imported.

    Example:
        >>> load_tensorrt_program("models/none.ts")
        Traceback (most recent call last):
        FileNotFoundError: [Errno 2] no TensorRT program 'models/none.ts': make it with ...
    """
    if not Path(path).is_file():
        raise FileNotFoundError(
            errno.ENOENT,
            f"no TensorRT program {os.fspath(path)!r}: make it with `python -m monai.bundle trt_export` on a machine with the "
            "GPU that will run it",
        )
    try:
        importlib.import_module("torch_tensorrt")
    except ImportError as error:
        raise ImportError(
            f"{os.fspath(path)} needs torch_tensorrt, which cannot be imported ({error}): `pip install torch_tensorrt` in the "
            "version of the installed torch, or run the network itself"
        ) from error
    return torch.jit.load(os.fspath(path), map_location=device)
