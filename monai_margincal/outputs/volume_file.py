"""Results that are volumes: NIfTI on the scan's exact grid, names that stay different for different scans, whole or none."""

from __future__ import annotations

import logging
import os
from typing import Any

from monai.config import NdarrayOrTensor
from monai.data.image_writer import NibabelWriter
from monai.transforms import SaveImage

from ..datasets.case_files import mask_file_name
from ..files import replacing
from .kind import Destination, ScanFile

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
        >>> save = SaveImage(writer="monai_margincal.outputs.volume_file.MaskWriter", output_dtype="uint8", print_log=False)
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


class VolumeFile(ScanFile):
    """A kind of output that is one NIfTI file per scan, (X, Y, Z), on the scan's grid.

    Args:
        destination: where the results go.
        postfix: what is put behind the scan's name, in place of the kind's own.
    """

    ending = ".nii.gz"
    #: type of the voxels on disk
    dtype: str

    def __init__(self, destination: Destination, postfix: str | None = None) -> None:
        super().__init__(destination, postfix)
        self.saver = SaveImage(
            output_dir=destination.output_dir,
            output_postfix=self.postfix,
            output_ext=self.ending,
            output_dtype=self.dtype,
            resample=False,
            data_root_dir=os.fspath(destination.data_root_dir),
            separate_folder=False,
            writer=MaskWriter,
            output_name_formatter=mask_file_name,
        )
