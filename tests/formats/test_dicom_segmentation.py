"""DICOM segmentations: all segments, and the slices that are not stored."""

from __future__ import annotations

from label_files import DATA
from shared import needs_shared

from monai_margincal.counting.label_file import count_file


@needs_shared
def test_segmentations_count_every_segment() -> None:
    """MONAI/issues/7055, /8468, MONAILabel/issues/565, MONAILabel/pull/1011: not only the last segment, no invented frame."""
    assert count_file(DATA / "dicom/dcmqi/liver.dcm").values == {0: 679334, 1: 107098}
    assert count_file(DATA / "dicom/dcmqi/sparse-labelmap-ppv5.dcm").values == {0: 1194, 1: 630}
    # one of its four slices holds no segment and is not stored: it is background all the same
    assert count_file(DATA / "dicom/highdicom/seg_image_ct_binary.dcm").values == {0: 386, 1: 638}
