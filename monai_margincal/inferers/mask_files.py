"""Masks on disk: the image's exact grid, names that stay different for different images, whole files or none."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from monai.config import NdarrayOrTensor
from monai.data.folder_layout import default_name_formatter
from monai.data.image_writer import NibabelWriter

from monai_margincal.files import replacing

_logger = logging.getLogger(__name__)


class MaskWriter(NibabelWriter):
    """NIfTI writer for :class:`monai.transforms.SaveImage` that keeps a scan of one slice three-dimensional.

    MONAI's writer either drops every trailing axis of length 1, so that the mask of an (X, Y, 1) scan is saved as (X, Y), or
    keeps a channel axis that the scan does not have. This one drops the channel axis of a one-channel mask and nothing
    else. The file appears under its name when it is complete.

    Example:
        >>> import tempfile, nibabel, torch
        >>> from monai.transforms import SaveImage
        >>> folder = tempfile.mkdtemp()
        >>> save = SaveImage(writer="monai_margincal.inferers.MaskWriter", output_dtype="uint8", print_log=False)
        >>> _ = save(torch.ones(1, 4, 5, 1), filename=f"{folder}/mask")
        >>> nibabel.load(f"{folder}/mask.nii.gz").shape
        (4, 5, 1)
    """

    def set_data_array(
        self, data_array: NdarrayOrTensor, channel_dim: int | None = 0, squeeze_end_dims: bool = True, **kwargs: Any
    ) -> None:
        """Take the mask, (1, X, Y, Z) or (K, X, Y, Z) with the channels on ``channel_dim``, or (X, Y, Z) if that is None."""
        super().set_data_array(data_array, channel_dim=channel_dim, squeeze_end_dims=False, **kwargs)
        if self.data_obj is not None and self.data_obj.shape[-1] == 1:
            self.data_obj = self.data_obj[..., 0]

    def write(self, filename: str | os.PathLike[str], verbose: bool = False, **obj_kwargs: Any) -> None:
        """Write the file, whole or not at all."""
        with replacing(filename) as beside:
            super().write(beside, verbose=False, **obj_kwargs)  # its message would name the temporary file
        if verbose:
            _logger.info("wrote %s", filename)


def mask_file_name(meta: Mapping[str, Any], saver: Any) -> dict[str, Any]:
    """Name a mask after its image, also when that is a folder of DICOM files whose name holds dots.

    For ``output_name_formatter`` of :class:`monai.transforms.SaveImage`, which drops everything behind the last dot of the
    image's name: the series ``1.2.840.1`` and ``1.2.840.2`` would both be saved as ``1.2.840_mask``, the second over the first.

    Args:
        meta: the image's metadata; its ``"filename_or_obj"`` is used.
        saver: the saving transform.

    Returns:
        arguments of :meth:`monai.data.FolderLayout.filename`.

    Example:
        >>> import tempfile
        >>> from monai_margincal.inferers import mask_file_name
        >>> with tempfile.TemporaryDirectory(prefix="1.2.840.") as series:
        ...     subject = mask_file_name({"filename_or_obj": series}, saver=None)["subject"]
        >>> subject == series + ".dcm"  # the ending that will be dropped
        True
    """
    name = default_name_formatter(dict(meta), saver)
    if Path(name["subject"]).is_dir():
        name["subject"] += ".dcm"
    return name
