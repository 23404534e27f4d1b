"""The class map of a frame as a PNG, which every program for pictures reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from PIL import Image

from ...files import replacing
from ..kind import ScanFile


class FrameMask(ScanFile):
    """``NAME_mask.png``: the class of every pixel as a grey value of 8 bits, of the size of the frame.

    Args:
        destination: where the results go.
        postfix: what is appended to the frame's name, in place of "mask".
    """

    kind = "frame_mask"
    postfix = "mask"
    ending = ".png"
    dtype = "uint8"

    def save(self, items: Mapping[Any, Any], key: str) -> None:
        """Write the class map."""
        with replacing(self.path(items[key].meta)) as beside:
            Image.fromarray(rows_of(items[key])).save(beside)


def rows_of(mask: torch.Tensor) -> np.ndarray:
    """A class map (1, width, height), as MONAI has pictures, as (height, width), uint8.

    Example:
        >>> rows_of(torch.zeros(1, 6, 4)).shape
        (4, 6)
    """
    return np.ascontiguousarray(np.asarray(mask[0].cpu()).astype(np.uint8).T)
