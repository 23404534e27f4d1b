"""NIfTI-1 and NIfTI-2 as a pair: the header in one file, the voxels in another, each compressed or not."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import naming_files
from .format import Format
from .label_image import LabelImage, VoxelBody, voxel_count
from .nifti import load_with_nibabel, shape_and_dtype
from .nifti_geometry import nifti_affine

_EXPECTED = "a NIfTI pair (.hdr and .img)"


def describe_nifti_pair(path: Path) -> LabelImage:
    """Read the header of a NIfTI pair, given either of its files.

    Raises:
        FileNotFoundError: one of the two files does not exist.
        ValueError: it is not a NIfTI pair of plain numbers.
    """
    import nibabel as nib

    with naming_files(path, f"cannot be read, expected {_EXPECTED}", raises=ValueError):
        image: Any = nib.load(path)
        shape, dtype = shape_and_dtype(path, image.header)
        voxels_file = Path(image.file_map["image"].filename)
        with voxels_file.open("rb") as file:
            encoding = "gzip" if file.read(2) == b"\x1f\x8b" else "raw"
        body = VoxelBody(
            (voxels_file,), 0, encoding, skip=int(image.dataobj.offset), dtype=dtype, voxels=voxel_count(path, shape)
        )
        # an Analyze header has no forms, but there may be a file next to it that says where its voxels lie
        affine = nifti_affine(image.header, str(path)) if "sform_code" in image.header else image.affine
        return LabelImage(
            path,
            format="NIfTI pair",
            shape=shape,
            dtype=dtype.name,
            affine=affine if affine is not None and np.isfinite(affine).all() else None,
            body=body,
            reader="nibabel",
            load=lambda: load_with_nibabel(path, body),
            # an Analyze header keeps its scale in other fields than a NIfTI header
            as_stored=False,
        )


def _both_files(path: Path) -> list[Path]:
    """Everything in the folder that has the file's name up to its ending."""
    stem = path.name[: -len(".hdr.gz") if path.name.lower().endswith(".gz") else -len(".hdr")]
    return sorted(part for part in path.parent.glob(glob.escape(stem) + ".*") if part.is_file())


FORMAT = Format(
    (".hdr", ".img", ".hdr.gz", ".img.gz"),
    describe_nifti_pair,
    _both_files,
    readers=(("NIfTI-1/2 header/image pair", "nibabel"),),
    # both files of an image have one of the endings: a folder would seem to hold every case twice
    is_listed=False,
)
