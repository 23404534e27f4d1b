"""A reader of NIfTI scans that leaves the header unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from monai.config import PathLike
from monai.data.image_reader import NibabelReader
from monai.utils import ensure_tuple

from ..formats.nifti import open_nifti
from ..formats.nifti_geometry import nifti_affine


class NiftiReader(NibabelReader):
    """Read NIfTI for :class:`monai.transforms.LoadImage` with the geometry that the standard gives it.

    MONAI's own reader "corrects" a header whose sform does not agree with ``pixdim`` to 1e-5 (rounded numbers or a tilted
    gantry are enough): it replaces the sform by the qform, even an empty one, and the scan loses its rotation and its origin;
    it also takes lengths in metres for millimetres. Here `nifti_affine` decides, and the metadata hold the header as it is in
    the file.

    Takes the arguments of :class:`monai.data.NibabelReader`. Endings other than ``.nii`` and ``.nii.gz`` are left to MONAI's
    other readers.

    Example:
        >>> import nibabel, tempfile
        >>> from monai.transforms import LoadImage
        >>> image = nibabel.Nifti1Image(np.zeros((4, 4, 2), np.int16), None)
        >>> image.set_sform(np.diag([0.7, 0.7, 5.0, 1.0]), code=2)  # pixdim stays 1, 1, 1
        >>> path = tempfile.mkdtemp() + "/ct.nii.gz"
        >>> nibabel.save(image, path)
        >>> LoadImage(reader="monai_margincal.transforms.NiftiReader")(path).affine.diagonal().round(decimals=4).tolist()
        [0.7, 0.7, 5.0, 1.0]
    """

    def read(self, data: Sequence[PathLike] | PathLike, **kwargs: Any) -> Any:
        """Open one file, or several that become the channels of one image."""
        self.filenames = ensure_tuple(data)
        images = [open_nifti(name, **{**self.kwargs, **kwargs}) for name in self.filenames]
        return images if len(images) > 1 else images[0]

    def _get_affine(self, img: Any) -> np.ndarray:
        return nifti_affine(img.header, str(img.get_filename() or "in memory"))
