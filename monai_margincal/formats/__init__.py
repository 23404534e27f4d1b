"""The readers of label and image files: one module per format, found by its ``FORMAT``.

Importing this room imports no image library; a reader does that when the first file needs it.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from pathlib import Path

from ..streams import is_stream
from .format import Format
from .label_image import LabelImage, VoxelBody
from .placeholder import refuse_placeholder, refuse_stream
from .scan_check import check_described

__all__ = [
    "FORMATS",
    "IMAGE_SUFFIXES",
    "PICTURE_SUFFIXES",
    "SUFFIXES",
    "Format",
    "LabelImage",
    "VoxelBody",
    "check_scan",
    "companions_of",
    "describe_label",
    "format_of",
    "suffix_of",
]

_modules = [import_module(f".{module.name}", __name__) for module in pkgutil.iter_modules(__path__)]
#: All formats, by the names of their modules.
FORMATS: tuple[Format, ...] = tuple(module.FORMAT for module in _modules if hasattr(module, "FORMAT"))
_FORMAT_OF = {suffix: format_ for format_ in FORMATS for suffix in format_.suffixes}
#: File name endings of labels.
SUFFIXES = tuple(suffix for suffix, format_ in _FORMAT_OF.items() if format_.describe is not None)
#: File name endings for which a folder is searched for images: of a header with its voxels in another file, only the header's.
IMAGE_SUFFIXES = tuple(suffix for format_ in FORMATS if format_.is_listed for suffix in format_.suffixes)
#: File name endings of pictures, which may be in colour and have no grid in millimetres.
PICTURE_SUFFIXES = tuple(suffix for format_ in FORMATS if format_.is_picture for suffix in format_.suffixes)


def describe_label(path: Path) -> LabelImage:
    """Read the header of a label file, or of the DICOM series in a folder.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the format is neither among `SUFFIXES` nor DICOM, or the file is damaged, empty or a pointer to another one;
            the message names it.
    """
    refuse_placeholder(path)
    found = format_of(path)
    if found is None or found.describe is None:
        raise ValueError(
            f"{path}: found the file name ending {suffix_of(path).lower()!r}, expected one of {', '.join(SUFFIXES)} or DICOM"
        )
    return found.describe(path)


def check_scan(path: Path, allow_gaps: bool = False) -> LabelImage | None:
    """Look at a scan before any reader does: compare what it promises with what it holds.

    Args:
        path: a file, or the folder of a DICOM series.
        allow_gaps: take a DICOM series in which a slice is missing, with a warning.

    Returns:
        what the headers say, to be compared with what a reader makes of them (DICOM), else None.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is damaged, empty, a pointer to another file or of a format that cannot be checked; the message names it.
    """
    refuse_placeholder(path)
    found = format_of(path)
    if found is not None and found.check_scan is not None:
        return found.check_scan(path, allow_gaps)
    if found is None or found.describe is None:
        raise ValueError(
            f"{path}: found the file name ending {suffix_of(path).lower()!r}, expected one of {', '.join(_FORMAT_OF)} or DICOM"
        )
    check_described(path, describe_label)
    return None


def format_of(path: Path) -> Format | None:
    """The format of a label file or folder, by its ending or else by its content; None if none fits."""
    if is_stream(path):  # looking into it would consume from it, or wait forever
        return None
    by_ending = None if path.is_dir() else _FORMAT_OF.get(suffix_of(path).lower())
    return by_ending or next((format_ for format_ in FORMATS if format_.recognizes(path)), None)


def companions_of(path: Path) -> list[Path]:
    """All files of which a case consists, given one of them or their folder.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a header that would say it is damaged, or it is a pipe or a device.
    """
    refuse_stream(path)
    found = format_of(path)
    return [path] if found is None else found.companions(path)


def suffix_of(path: Path) -> str:
    """The known ending of a file name, in its original letter case, or what follows its last dot."""
    lower = path.name.lower()
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if lower.endswith(suffix):
            return path.name[len(path.name) - len(suffix) :]
    return path.suffix
