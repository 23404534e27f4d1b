"""One module per file format; this table says which one reads which file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .label_image import LabelImage, VoxelBody, naming

__all__ = ["SUFFIXES", "LabelImage", "VoxelBody", "describe_label", "naming", "suffix_of"]

#: suffix -> module of this package and function in it that reads the header
_READERS = {
    ".nii": ("nifti", "describe_nifti"),
    ".nii.gz": ("nifti", "describe_nifti"),
    ".hdr": ("nifti", "describe_nifti"),
    ".img": ("nifti", "describe_nifti"),
    ".hdr.gz": ("nifti", "describe_nifti"),
    ".img.gz": ("nifti", "describe_nifti"),
    ".nrrd": ("nrrd", "describe_nrrd"),
    ".nhdr": ("nrrd", "describe_nrrd"),
    ".mha": ("metaimage", "describe_metaimage"),
    ".mhd": ("metaimage", "describe_metaimage"),
    ".png": ("png", "describe_png"),
    ".dcm": ("dicom", "describe_dicom"),
}
#: File name endings that are read.
SUFFIXES = tuple(_READERS)


def describe_label(path: Path) -> LabelImage:
    """Read the header of a label file, or of the DICOM series in a folder.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the format is not among `SUFFIXES` and not DICOM, or the file is damaged; the message names it.
    """
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file, expected a label file")
    return _reader(path)(path)


def suffix_of(path: Path) -> str:
    """The known ending of a file name, in the case it has there, or what follows its last dot."""
    lower = path.name.lower()
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if lower.endswith(suffix):
            return path.name[len(path.name) - len(suffix) :]
    return path.suffix


def _reader(path: Path) -> Callable[[Path], LabelImage]:
    from importlib import import_module

    suffix = suffix_of(path).lower()
    if path.is_dir() or (suffix not in _READERS and _is_dicom(path)):
        suffix = ".dcm"
    if suffix not in _READERS:
        raise ValueError(
            f"{path}: found the file name ending {suffix!r}, expected one of {', '.join(SUFFIXES)} or DICOM"
        )
    module, function = _READERS[suffix]
    return getattr(import_module(f".{module}", __name__), function)


def _is_dicom(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(132)[128:] == b"DICM"
