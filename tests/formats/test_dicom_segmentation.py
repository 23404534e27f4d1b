"""DICOM segmentations: all segments, and the slices that are not stored."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pydicom
import pytest
from dicom_files import nested, write_segmentation
from label_files import DATA
from shared import needs_shared

from monai_margincal.counting.label_file import count_file
from monai_margincal.datasets import ScanDataset
from monai_margincal.errors import CaseError
from monai_margincal.formats import describe_label


@needs_shared
def test_segmentations_count_every_segment() -> None:
    """MONAI/issues/7055, /8468, MONAILabel/issues/565, MONAILabel/pull/1011: not only the last segment, no invented frame."""
    assert count_file(DATA / "dicom/dcmqi/liver.dcm").values == {0: 679334, 1: 107098}
    assert count_file(DATA / "dicom/dcmqi/sparse-labelmap-ppv5.dcm").values == {0: 1194, 1: 630}
    # one of its four slices holds no segment and is not stored: it is background all the same
    assert count_file(DATA / "dicom/highdicom/seg_image_ct_binary.dcm").values == {0: 386, 1: 638}


FRAMES = np.random.RandomState(0).rand(4, 8, 6) < 0.4
INSIDE = int(FRAMES.sum())
#: of slices every 2.5 mm, in the order of no one
HEIGHTS = {3: 37.5, 0: 30.0, 1: 32.5, 5: 42.5}


def _places(*heights: float) -> list[list[float]]:
    return [[-10.0, 20.0, height] for height in heights]


@pytest.mark.parametrize("step", [2.5, None, 1.7], ids=["spacing", "no spacing", "wrong spacing"])
@pytest.mark.parametrize("binary", [True, False])
def test_gaps_between_stored_slices_are_background(tmp_path: Path, binary: bool, step: float | None) -> None:
    """The file refers to no series: the places of its frames show six slices, of which two are not stored."""
    frames = FRAMES if binary else FRAMES.astype(np.uint8)
    file = write_segmentation(tmp_path / "seg.dcm", frames, _places(*HEIGHTS.values()), step)
    with pytest.warns(
        UserWarning, match=rf"^{file}: found no references .*show 6 slices, of which 4 are stored.*cannot be known"
    ):
        count = count_file(file)
    assert count.shape == (6, 8, 6)
    assert count.values == {0: 6 * 48 - INSIDE, 1: INSIDE}
    with pytest.warns(UserWarning, match="no references"):
        volume = describe_label(file).load()
    for frame, slot in zip(FRAMES, HEIGHTS, strict=True):
        assert np.array_equal(volume[..., slot], frame.transpose()), "slices lie in their order"
    assert not volume[..., [2, 4]].any()


def test_a_spacing_smaller_than_every_step_shows_more_slices(tmp_path: Path) -> None:
    file = write_segmentation(tmp_path / "seg.dcm", FRAMES, _places(0, 5, 10, 20), 2.5)
    with pytest.warns(UserWarning, match="show 9 slices, of which 4 are stored"):
        assert count_file(file).values == {0: 9 * 48 - INSIDE, 1: INSIDE}


@pytest.mark.parametrize(("references", "depth"), [(4, 4), (6, 6), (9, 9)])
def test_references_say_how_many_slices_there_are(tmp_path: Path, references: int, depth: int) -> None:
    file = write_segmentation(tmp_path / "seg.dcm", FRAMES, _places(*HEIGHTS.values()), references=references)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert count_file(file).values == {0: depth * 48 - INSIDE, 1: INSIDE}
    messages = [str(warning.message) for warning in caught if str(file) in str(warning.message)]
    assert len(messages) == (references == 4)
    if messages:
        assert "found the places of 6 slices, expected at most the 4 source images that it refers to" in messages[0]


def test_a_padding_that_is_no_background_cannot_fill_gaps(tmp_path: Path) -> None:
    frames = FRAMES.astype(np.uint8)
    file = write_segmentation(tmp_path / "seg.dcm", frames, _places(*HEIGHTS.values()), padding=5)
    with (
        pytest.warns(UserWarning, match="no references"),
        pytest.raises(ValueError, match=rf"^{file}: found 4 of 6 slices and the padding value 5, expected padding 0"),
    ):
        count_file(file)


def _turn_one(image: pydicom.Dataset) -> None:
    group = image.PerFrameFunctionalGroupsSequence[2]
    group.PlaneOrientationSequence = nested(ImageOrientationPatient=[-1.0, 0, 0, 0, -1, 0])


def _widen_one(image: pydicom.Dataset) -> None:
    image.PerFrameFunctionalGroupsSequence[2].PixelMeasuresSequence = nested(PixelSpacing=[0.7, 0.8])


@pytest.mark.parametrize(
    ("places", "change", "message"),
    [
        (_places(30, 32.5, 36.2, 40), None, r"the slice frame \d .* mm from where slices every .* mm have it"),
        ([[-10.0, 20.0 + 0.3 * k, 30 + 2.5 * k] for k in range(4)], None, r"askew by 6\.843 degrees.* frame 4 by 0\.9 mm"),
        ([[-10.0 + 5 * (k == 1), 20.0, 30 + 2.5 * k] for k in range(4)], None, "the slice frame 2 5 mm beside the others"),
        (_places(30, 32.5, 35, 37.5), _turn_one, "the slice frame 3 turned by 180 degrees"),
        (_places(30, 32.5, 35, 37.5), _widen_one, r"pixels of 0\.8 x 0\.7 mm in the slice frame 3 .* a corner by 0\.5 mm"),
        (_places(30, 32.5, float("inf"), 37.5), None, "frame 3: found the ImagePositionPatient .*expected 3 finite numbers"),
    ],
    ids=["uneven", "tilted", "beside", "turned", "pixels", "infinite"],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_frames_that_are_no_straight_stack_are_refused(tmp_path: Path, places, change, message) -> None:
    file = write_segmentation(tmp_path / "seg.dcm", FRAMES, places, references=4, change=change)
    with pytest.raises(ValueError, match=rf"^{file}[:,].*{message}"):
        count_file(file)


def test_frames_of_several_segments_share_their_places(tmp_path: Path) -> None:
    def two_segments(image: pydicom.Dataset) -> None:
        image.SegmentSequence.append(nested(SegmentNumber=2)[0])
        for group in image.PerFrameFunctionalGroupsSequence[2:]:
            group.SegmentIdentificationSequence[0].ReferencedSegmentNumber = 2

    frames = FRAMES.copy()
    frames[2:] &= ~frames[:2]
    file = write_segmentation(tmp_path / "seg.dcm", frames, _places(30, 35, 30, 35), change=two_segments)
    first, second = int(frames[:2].sum()), int(frames[2:].sum())
    with pytest.warns(UserWarning, match="show 3 slices, of which 2 are stored"):
        assert count_file(file).values == {0: 3 * 48 - first - second, 1: first, 2: second}


def test_without_places_and_references_the_warning_says_so(tmp_path: Path) -> None:
    def no_orientation(image: pydicom.Dataset) -> None:
        del image.SharedFunctionalGroupsSequence[0].PlaneOrientationSequence

    file = write_segmentation(tmp_path / "seg.dcm", FRAMES, _places(*HEIGHTS.values()), change=no_orientation)
    with pytest.warns(
        UserWarning, match=rf"^{file}: found neither references to source images nor where every frame lies"
    ):
        assert count_file(file).values == {0: 4 * 48 - INSIDE, 1: INSIDE}


def test_a_segmentation_is_no_scan(tmp_path: Path) -> None:
    file = write_segmentation(tmp_path / "seg.dcm", FRAMES, _places(*HEIGHTS.values()))
    with pytest.raises(CaseError, match=rf"^{file}: found a DICOM segmentation, expected a scan"):
        ScanDataset([{"image": str(file)}], None)[0]
