"""Where the voxels of a NIfTI file lie: one rule for reading scans, counting labels and writing masks.

A NIfTI header can say this in three ways at once. The standard's order is: the sform where its code is above 0, else the qform
where its code is above 0, else the voxel sizes (``pixdim``) alone, which leave left, right and position undetermined. The lengths
are in the header's own unit (``xyzt_units``): metres, millimetres or micrometres; no unit means millimetres.

Source: NIfTI-1 data format, "3D image (volume) orientation and location in space" (nifti1.h, NIfTI DFWG).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

#: code of the unit of length in the three lowest bits of ``xyzt_units`` -> millimetres
_MILLIMETRES = {0: 1.0, 1: 1000.0, 2: 1.0, 3: 0.001}

#: what a header says about position, apart from the size and the type of the voxels
_FIELDS = (
    *("sform_code", "srow_x", "srow_y", "srow_z"),
    *("qform_code", "quatern_b", "quatern_c", "quatern_d", "qoffset_x", "qoffset_y", "qoffset_z"),
    *("pixdim", "xyzt_units"),
)


def nifti_affine(header: Any, where: str) -> np.ndarray:
    """From voxel indices to millimetres in RAS orientation, float64 (4, 4), by the standard's rule.

    Args:
        header: a nibabel header of NIfTI-1 or NIfTI-2. An Analyze 7.5 header has sizes only.
        where: the file, for messages.

    Raises:
        ValueError: the unit of length is unknown, or the quaternion of the qform that counts is invalid.

    With neither form, where `has_orientation` is False, the first axis is taken to point to the left and the origin to lie in
    the middle, as in nibabel; only the sizes mean anything then.

    Example:
        >>> import nibabel
        >>> header = nibabel.Nifti1Header()
        >>> header.set_sform(np.diag([0.0007, 0.0007, 0.005, 1]), code=1)
        >>> header.set_xyzt_units("meter")
        >>> nifti_affine(header, "ct.nii").diagonal().round(4).tolist()
        [0.7, 0.7, 5.0, 1.0]
    """
    if "sform_code" in header and int(header["sform_code"]) > 0:
        affine = np.array(header.get_sform(), dtype=np.float64)
    elif "qform_code" in header and int(header["qform_code"]) > 0:
        try:
            affine = np.array(header.get_qform(), dtype=np.float64)
        except Exception as error:  # nibabel's own HeaderDataError, or a ValueError of the quaternion
            raise ValueError(
                f"{where}: found a qform that is not a rotation ({error}), expected a unit quaternion"
            ) from error
    else:
        affine = np.array(header.get_base_affine(), dtype=np.float64)
    affine[:3] *= _unit(header, where)
    return affine


def has_orientation(header: Any) -> bool:
    """Whether a header says more than the sizes of the voxels: an sform or a qform with a code above 0.

    Example:
        >>> import nibabel
        >>> has_orientation(nibabel.Nifti1Header())
        False
    """
    return any(form in header and int(header[form]) > 0 for form in ("sform_code", "qform_code"))


def _unit(header: Any, where: str) -> float:
    """Millimetres per unit of length."""
    code = int(header["xyzt_units"]) & 0b111 if "xyzt_units" in header else 0
    if code not in _MILLIMETRES:
        raise ValueError(
            f"{where}: found the unit of length {code} in the NIfTI header, expected 0 or 2 (mm), 1 (m) or 3 (micrometres)"
        )
    return _MILLIMETRES[code]


def placement(header: Mapping[str, Any]) -> dict[str, np.ndarray] | None:
    """What a header says about position, to be put into the header of a file on the same grid; None for other formats.

    Args:
        header: a nibabel header, or the metadata that MONAI's readers make of one.

    Example:
        >>> placement({"space": "left-posterior-superior"}) is None
        True
    """
    if not all(field in header for field in _FIELDS):
        return None
    places = {field: np.array(header[field]) for field in _FIELDS}
    # MONAI's copy of what the file said: its transforms overwrite pixdim with the sizes of what they made
    if "original_pixdim" in header:
        places["pixdim"] = np.array(header["original_pixdim"])
    return places


def place(header: Any, places: Mapping[str, np.ndarray]) -> None:
    """Put `placement` into a header: both forms, both codes, sizes and unit, so that every reader places both files alike.

    Example:
        >>> import nibabel
        >>> scan, mask = nibabel.Nifti1Header(), nibabel.Nifti1Header()
        >>> scan.set_qform(np.diag([2.0, 2.0, 4.0, 1.0]), code=1)
        >>> place(mask, placement(scan))
        >>> int(mask["qform_code"]), int(mask["sform_code"]), mask.get_qform().diagonal().tolist()
        (1, 0, [2.0, 2.0, 4.0, 1.0])
    """
    for field in _FIELDS:
        value = places[field]
        # the steps of further axes (time) belong to the scan alone
        if field == "pixdim":
            header["pixdim"][:4] = value[:4]
        else:
            header[field] = value
