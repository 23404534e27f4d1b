"""The label files that a folder stands for."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ..errors import some_of
from ..formats import IMAGE_SUFFIXES, PICTURE_SUFFIXES, suffix_of

#: names of the folders that hold the labels of a data set: `labels`, `labelsTr`, `masks_train`, `Segmentation`, ...
_LABEL_FOLDER = re.compile(
    r"(?i)(labels?|masks?|segs?|segmentations?|annotations?|ground[-_ ]?truth)(?![a-z])|labelsT[rs]"
)
_KNOWN = frozenset(IMAGE_SUFFIXES) - {".dcm"}


def label_files(folder: str | os.PathLike[str]) -> list[Path]:
    """List the label files of a folder, which may also be the folder of a whole data set.

    A folder with volumes (NIfTI, NRRD, MetaImage, ...) stands for these; with pictures and no volumes, for the pictures. A folder
    of folders stands for what lies in those that are named after labels, such as ``labels``, ``labelsTr`` or ``masks``, or is a
    list of DICOM series, one per folder. Any other folder of files is one DICOM series. Names that begin with a dot are skipped.

    Args:
        folder: ``~`` is the home folder.

    Returns:
        files, or folders of one DICOM series each, sorted by name.

    Raises:
        ValueError: the folder is empty, or holds folders that may be images as well as labels: these are never guessed.

    Example:
        >>> from monai_margincal.samples import sample_dir
        >>> [path.name for path in label_files(sample_dir("lung_ct"))]
        ['lung1.nii.gz', 'lung2.nii.gz']
    """
    place = Path(folder).expanduser()
    entries = sorted(entry for entry in place.iterdir() if not entry.name.startswith("."))
    known = [entry for entry in entries if entry.is_file() and suffix_of(entry).lower() in _KNOWN]
    volumes = [file for file in known if suffix_of(file).lower() not in PICTURE_SUFFIXES]
    if known:
        return volumes or known
    folders = [entry for entry in entries if entry.is_dir()]
    if not folders:
        if not entries:
            raise ValueError(f"{place}: found an empty folder, expected label files")
        return [place]
    named = [entry for entry in folders if _LABEL_FOLDER.match(entry.name)]
    if named:
        return [file for entry in named for file in label_files(entry)]
    if all(_is_series(entry) for entry in folders):
        return folders
    names = some_of((repr(entry.name) for entry in folders), at_most=5)
    raise ValueError(
        f"{place}: found the folders {names}, expected one named after labels; name the folder that holds them, or a "
        "pattern such as 'DATA/*/label.nii.gz'"
    )


def _is_series(folder: Path) -> bool:
    """Whether a folder holds files, none of which is a volume or a picture."""
    entries = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
    return bool(entries) and not any(entry.is_dir() or suffix_of(entry).lower() in _KNOWN for entry in entries)
