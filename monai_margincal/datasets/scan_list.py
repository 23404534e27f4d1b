"""Scans as people name them: files, folders of files, folders of one DICOM series each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ..formats import IMAGE_SUFFIXES, PICTURE_SUFFIXES, suffix_of
from ..formats.video import VIDEO_SUFFIXES

#: what holds a whole volume: pictures beside scans are no scans, and a file of a DICOM series is a slice
_VOLUMES = frozenset(IMAGE_SUFFIXES) - {*PICTURE_SUFFIXES, ".dcm"}
#: what a folder may be full of without being a DICOM series
_FRAMES = {*PICTURE_SUFFIXES, *VIDEO_SUFFIXES}


def scan_list(paths: Sequence[str | os.PathLike[str]]) -> list[dict[str, str]]:
    """List the scans that paths stand for.

    A file is a scan. A folder with volumes in it (NIfTI, NRRD, MetaImage, ...) stands for these, and one of nothing but pictures,
    such as the frames of a video, or videos, for these. Any other folder with files is one DICOM series, whatever its slices are
    called. A folder of folders stands for what these stand for. Names that begin with a dot are skipped.

    Args:
        paths: files and folders; ``~`` is the home folder.

    Returns:
        one ``{"image": absolute path}`` per scan, each once, in the order of the paths, by name within a folder.

    Raises:
        ValueError: no path is given, or a folder holds nothing.
        FileNotFoundError: a path does not exist.

    Example:
        >>> from monai_margincal.samples import sample_dir
        >>> [Path(item["image"]).name for item in scan_list([f"{sample_dir('lung_ct')}/images"])]
        ['lung1.nii.gz', 'lung2.nii.gz']
    """
    if not paths:
        raise ValueError("scans: found none, expected files or folders")
    scans: dict[str, None] = {}
    for path in paths:
        scans.update(dict.fromkeys(map(str, _scans_in(Path(path).expanduser().absolute()))))
    return [{"image": scan} for scan in scans]


def _scans_in(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise FileNotFoundError(f"{path}: found no such file or folder, expected a scan or a folder of scans")
    entries = sorted(entry for entry in path.iterdir() if not entry.name.startswith("."))
    files = [entry for entry in entries if entry.is_file()]
    volumes = [file for file in files if suffix_of(file).lower() in _VOLUMES]
    if volumes:
        return volumes
    if files and all(suffix_of(file).lower() in _FRAMES for file in files):
        return files
    if files:
        return [path]
    scans = [scan for folder in entries for scan in _scans_in(folder)]
    if not scans:
        raise ValueError(f"{path}: found an empty folder, expected scans or the slices of a DICOM series")
    return scans
