"""Results that are volumes: NIfTI on the scan's exact grid, different names for different scans, files complete or absent."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

import nibabel
import numpy as np
from monai.config import NdarrayOrTensor
from monai.data.image_writer import NibabelWriter
from monai.transforms import SaveImage

from ..datasets.case_files import mask_file_name
from ..files import replacing
from ..formats.nifti_geometry import nifti_affine, place, placement
from .kind import Destination, ScanFile

_logger = logging.getLogger(__name__)


class MaskWriter(NibabelWriter):
    """NIfTI writer for :class:`monai.transforms.SaveImage` that keeps a scan of one slice three-dimensional.

    MONAI's writer either drops every trailing axis of length 1, so that the mask of an (X, Y, 1) scan is saved as (X, Y), or
    keeps a channel axis that the scan does not have. This one drops the channel axis of a one-channel mask and nothing
    else. The mask of a NIfTI scan gets both forms, their codes, the sizes and the unit from the scan's header, so that every
    program puts the two in the same place, whichever form it trusts. The file appears under its name once it is complete.

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

    def set_metadata(self, meta_dict: Mapping[str, Any] | None, resample: bool = True, **options: Any) -> None:
        """Take the affine of the mask, and the places in the scan's header where the mask lies on the scan's grid."""
        super().set_metadata(meta_dict, resample=resample, **options)
        self.places = _places(meta_dict or {}, self.affine)

    def write(self, filename: str | os.PathLike[str], verbose: bool = False, **obj_kwargs: Any) -> None:
        """Write the file, completely or not at all."""
        if self.places is None:
            with replacing(filename) as beside:
                super().write(beside, verbose=False, **obj_kwargs)  # its message would name the temporary file
        else:
            image = self.create_backend_obj(self.data_obj, affine=self.affine, dtype=self.output_dtype, **obj_kwargs)
            header = image.header
            place(header, self.places)
            with replacing(filename) as beside:
                # without an affine nibabel writes the header as it is
                nibabel.save(type(image)(np.asanyarray(image.dataobj), None, header), beside)
        if verbose:
            _logger.info("wrote %s", filename)


def _places(meta: Mapping[str, Any], affine: Any) -> dict[str, np.ndarray] | None:
    """What the header of a NIfTI scan says about position; None if a volume with this affine lies elsewhere."""
    places = placement(meta)
    if places is None or affine is None:
        return None
    header = nibabel.Nifti1Header()
    place(header, places)
    return places if np.allclose(nifti_affine(header, "the scan"), np.asarray(affine), rtol=1e-5, atol=1e-3) else None


class VolumeFile(ScanFile):
    """A kind of output that is one NIfTI file per scan, (X, Y, Z), on the scan's grid.

    Args:
        destination: where the results go.
        postfix: what is appended to the scan's name, in place of the kind's own.
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
