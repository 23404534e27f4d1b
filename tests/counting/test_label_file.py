"""Every label file of the shared data: counted as a second reader counts it, or refused with its name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk
from label_files import DATA, LABEL, save, unique
from shared import needs_shared

from monai_margincal.counting.label_file import count_file
from monai_margincal.counting.voxel_counts import value_counts
from monai_margincal.formats import describe_label

#: file -> counts that README.md of the shared data gives
STATED = {
    "lung_ct/lung1_label.nrrd": {0: 12582075, 1: 837},
    "lung_ct/lung2_label.nrrd": {0: 15966140, 1: 24644},
    "lung_ct/lung1_crop_label.nii.gz": {0: 192 * 192 * 24 - 837, 1: 837},
    "lung_ct/lung2_crop_label.nii.gz": {0: 192 * 192 * 24 - 24644, 1: 24644},
    "chest_labelmaps/crop_ct_interactiveLobeSegmentation.nrrd": {
        0: 7188044,
        4: 1416421,
        5: 1133405,
        6: 1201534,
        7: 2300091,
        8: 1440102,
        512: 103443,
        516: 7992,
        517: 63,
        518: 9622,
        519: 30303,
        520: 11252,
    },
    "chest_labelmaps/wholeLung-64.nrrd": {0: 257960, 1: 65624},
    "abdomen_ct/example_seg_fast_brain_EMPTY.nii.gz": {0: 369660},
    "spleen_ct/spleen_8_label.nii.gz": {0: 8225152, 1: 163456},
}


#: label files that a second reader must count the same
LABELS = [
    *STATED,
    "abdomen_ct/example_seg.nii.gz",
    "abdomen_ct/example_seg_fast_force_split.nii.gz",
    "chest_labelmaps/lm-64.nrrd",
    "chest_labelmaps/lm-64-transformed.nrrd",
    "chest_labelmaps/ct-patch_ILDClassification.nrrd",
    "chest_labelmaps/simple_lm.nrrd",
    "dicom/dcmqi/liver_spine_seg.nrrd",
    "dicom/dcmqi/liver_spine_gapped_seg.nrrd",
    "dicom/dcmqi/partial_overlaps-1.nrrd",
    "dicom/dcmqi/spine_seg_label5.nrrd",
    "dicom/monai_ct_dicom/anatomical_label.nii.gz",
    "dicom/monai_ct_dicom/reoriented_anat_moved_label.nii.gz",
    "odd/nibabel/standard.nii.gz",
    "odd/nifti_reader_js/with_extension.nii.gz",
    "surgical/green_seg.png",
]


#: what is no label -> what the refusal says
REFUSED = {
    "abdomen_ct/example_ct.nii.gz": "2598 label value.*looks like an image",
    "abdomen_ct/spine_report_rgb.nii.gz": "RGB colours",
    "chest_labelmaps/ct-64.nrrd": "looks like an image",
    "chest_labelmaps/simple_ct.nrrd": "from -1024 to -30",
    "dicom/dcmqi/ct-3slice": "looks like an image",
    "dicom/dcmqi/partial_overlaps.dcm": r"overlap in 3134 voxel.*\{1: 9602, 2: 11888, 3: 10743, 4: 6693, 5: 4713\}",
    "dicom/highdicom/seg_image_ct_binary_overlap.dcm": r"overlap in 16 voxel.*\{1: 64, 2: 16\}",
    "dicom/highdicom/seg_image_ct_true_fractional.dcm": "type FRACTIONAL",
    "dicom/pydicom/MR_truncated.dcm": "less than expected",
    "dicom/pydicom/liver_1frame.dcm": r"found 1 frame\(s\), but 3 descriptions",
    "dicom/monai_ct_dicom/CT_DICOM": "gap of 202.5 mm.*a slice is missing",
    "hippocampus_mr": "found no DICOM file in this folder.*give a pattern",
    "odd/nibabel/anatomical.nii": "looks like an image",
    "odd/nibabel/functional.nii": "found 4 axes",
    "odd/nibabel/example_nifti2.nii.gz": r"found 4 axes \(shape \(32, 20, 12, 2\)\)",
    "odd/nifti_reader_js/air.hdr.gz": "not integers: 0.362956",
    "odd/nifti_reader_js/big.nii.gz": "not integers: -8.71075",
    "odd/nifti_reader_js/not-nifti.nii": "do not start a NIfTI header",
    "surgical/green.png": "mode RGB",
    "README.md": "file name ending '.md'",
}


@needs_shared
@pytest.mark.parametrize("name", LABELS)
def test_shared_label_equals_a_second_reader(name: str) -> None:
    path = DATA / name
    count = count_file(path)
    # SimpleITK for NIfTI and PNG, which are read by others here; the stated truth for NRRD, which it reads here
    assert count.values == unique(sitk.GetArrayFromImage(sitk.ReadImage(str(path))))
    if name in STATED:
        assert count.values == STATED[name]


@needs_shared
@pytest.mark.parametrize("name", LABELS)
def test_stream_equals_the_general_reader(name: str) -> None:
    image = describe_label(DATA / name)
    assert count_file(DATA / name).values == value_counts(image.load())
    assert ("stream" in count_file(DATA / name).reader) == (image.body is not None)


@needs_shared
@pytest.mark.parametrize("name", REFUSED)
def test_shared_non_label_is_refused_by_name(name: str) -> None:
    path = DATA / name
    with pytest.raises(ValueError, match=REFUSED[name]) as caught:
        count_file(path)
    assert str(caught.value).startswith(str(path))


@needs_shared
def test_geometry_of_flipped_and_oblique_labels() -> None:
    """MONAI/issues/5332, /2902, /6944: volumes are positive, and readers agree on the spacing."""
    straight = count_file(DATA / "chest_labelmaps" / "lm-64.nrrd")
    oblique = count_file(DATA / "chest_labelmaps" / "lm-64-transformed.nrrd")
    assert straight.spacing == pytest.approx(oblique.spacing)
    assert straight.voxel_volume == pytest.approx(4.171872**2 * 3.98734177)
    assert oblique.voxel_volume == pytest.approx(straight.voxel_volume)
    for name in ("chest_labelmaps/lm-64-transformed.nrrd", "spleen_ct/spleen_8_label.nii.gz"):
        image = sitk.ReadImage(str(DATA / name))
        assert count_file(DATA / name).spacing == pytest.approx(image.GetSpacing(), rel=1e-6)
        affine = np.array(count_file(DATA / name).affine)
        corner = np.array(image.TransformIndexToPhysicalPoint((3, 2, 1))) * [-1, -1, 1]
        assert (affine @ [3, 2, 1, 1])[:3] == pytest.approx(corner, rel=1e-5, abs=1e-3)
    assert count_file(DATA / "chest_labelmaps" / "simple_lm.nrrd").voxel_volume is None


def test_one_hot_channels_of_a_file(tmp_path: Path) -> None:
    hot = np.stack([k == LABEL for k in range(4)], -1).astype(np.uint8)
    path = save(tmp_path / "label.nii.gz", hot)
    assert count_file(path, ids=range(4)).values == unique(LABEL)
    with pytest.raises(ValueError, match=r"label\.nii\.gz: found 4 axes .*\(3 ids are declared\)"):
        count_file(path, ids=range(3))
    hot[0, 0, 0] = 1
    with pytest.raises(ValueError, match=r"label\.nii\.gz: found 1 voxel\(s\) in more than one class"):
        count_file(save(path, hot), ids=range(4))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([[[0.0, np.nan]]]), "not integers: nan"),
        (np.array([[[0.0, 1.5]]]), "not integers: 1.5"),
        (np.array([[[0, -1, 1]]], np.int16), r"from -1 to 1, expected at most 1024 integer class ids >= 0"),
    ],
)
def test_values_that_are_no_labels(tmp_path: Path, array: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=rf"label\.nii: found .*{message}"):
        count_file(save(tmp_path / "label.nii", array))


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent\.nii\.gz: no such file"):
        count_file(tmp_path / "absent.nii.gz")
