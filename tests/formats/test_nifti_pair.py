"""NIfTI headers with their voxels in another file."""

from __future__ import annotations

import pytest
from label_files import DATA
from shared import needs_shared

from monai_margincal.counting.label_file import count_file


@needs_shared
def test_header_without_image_is_a_missing_file() -> None:
    with pytest.raises(FileNotFoundError, match=r"nifti1\.hdr.*nifti1\.img"):
        count_file(DATA / "odd" / "nibabel" / "nifti1.hdr")
