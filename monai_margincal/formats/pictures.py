"""Pictures that are images but not labels: compression or colours change their values."""

from __future__ import annotations

from pathlib import Path

from ..errors import naming_files
from .format import Format


def check_picture(path: Path, allow_gaps: bool = False) -> None:
    """Raise a ValueError unless a picture can be decoded: some readers fill in a lost part with grey.

    A stack of pictures does not say how many there must be, and a truncated one is read as a shorter one, so stacks are refused.
    """
    from PIL import Image

    with (
        naming_files(path, "cannot be read, expected a picture", raises=ValueError),
        Image.open(path) as picture,
    ):
        frames = getattr(picture, "n_frames", 1)
        if frames > 1:
            raise ValueError(
                f"{path}: found a stack of {frames} pictures, expected a format that says how many there must be"
            )
        picture.load()


FORMAT = Format((".jpg", ".jpeg", ".bmp", ".tif", ".tiff"), describe=None, check_scan=check_picture, is_picture=True)
