"""Files of weights, read without running anything that they hold."""

from __future__ import annotations

import os
import warnings
from typing import Any

import torch

__all__ = ["load_plain_tensors"]


def load_plain_tensors(path: str | os.PathLike[str]) -> Any:
    """Load what `torch.save` has written, on the CPU, if it holds tensors and plain Python values alone.

    Args:
        path: the file; that it is there is for the caller to say.

    Raises:
        ValueError: it holds something else, or is damaged; the message names it.
    """
    try:
        with warnings.catch_warnings():
            # of another pickle protocol: what follows is either tensors or an error
            warnings.filterwarnings("ignore", message="Detected pickle protocol")
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise ValueError(f"{path}: found no file of plain tensors ({_first_line(error)}), expected weights") from error


def _first_line(error: Exception) -> str:
    # PyTorch's message continues with the advice to execute the file's contents
    text = str(error).split(" In PyTorch", 1)[0].strip()
    return text.splitlines()[0][:200] if text else type(error).__name__
