"""Where the files about a scan are written: in the output folder, at the place that the scan has in the data set's folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from monai.data import FolderLayout
from monai.data.folder_layout import default_name_formatter
from monai.utils import ImageMetaKey

from ..formats import suffix_of


def case_file(
    meta: Mapping[str, Any],
    output_dir: str | os.PathLike[str],
    postfix: str,
    extension: str,
    *,
    data_root_dir: str | os.PathLike[str] = "",
) -> Path:
    """Name a file after the scan that it is about, as :class:`monai.transforms.SaveImage` names its mask.

    Args:
        meta: the scan's metadata; its ``"filename_or_obj"`` is used.
        output_dir: folder of all results.
        postfix: what follows the scan's name.
        extension: ending of the file, with the dot.
        data_root_dir: folder of the data set; the scan's subfolder below it is kept.

    Returns:
        the path; its folder may not exist yet.

    Example:
        >>> case_file({"filename_or_obj": "/data/a/ct.nii.gz"}, "/out", "overlay", ".png", data_root_dir="/data").as_posix()
        '/out/a/ct_overlay.png'
    """
    layout = FolderLayout(output_dir, postfix, extension, parent=False, makedirs=False, data_root_dir=data_root_dir)
    return Path(layout.filename(subject=mask_file_name(meta, None)["subject"]))


#: instead of a file's name
IN_MEMORY = "in memory"


def scan_of(meta: Mapping[str, Any]) -> str:
    """The file or folder that a scan was read from, or "in memory"."""
    return str(meta.get(ImageMetaKey.FILENAME_OR_OBJ) or IN_MEMORY)


def mask_file_name(meta: Mapping[str, Any], saver: Any) -> dict[str, Any]:
    """Name a mask after its image, also when that is a folder of DICOM files whose name holds dots, or `CT.NII.GZ`.

    For ``output_name_formatter`` of :class:`monai.transforms.SaveImage`, which drops everything behind the last dot of the
    image's name: the series ``1.2.840.1`` and ``1.2.840.2`` would both be saved as ``1.2.840_mask``, the second over the first.

    Args:
        meta: the image's metadata; its ``"filename_or_obj"`` is used.
        saver: the saving transform.

    Returns:
        arguments of :meth:`monai.data.FolderLayout.filename`.

    Example:
        >>> import tempfile
        >>> from monai_margincal.datasets import mask_file_name
        >>> with tempfile.TemporaryDirectory(prefix="1.2.840.") as series:
        ...     subject = mask_file_name({"filename_or_obj": series}, saver=None)["subject"]
        >>> subject == series + ".dcm"  # the ending that will be dropped
        True
    """
    name = default_name_formatter(dict(meta), saver)
    if Path(name["subject"]).is_dir():
        name["subject"] += ".dcm"
    else:  # endings are dropped in lower case only
        ending = suffix_of(Path(name["subject"]))
        name["subject"] = name["subject"].removesuffix(ending) + ending.lower()
    return name
