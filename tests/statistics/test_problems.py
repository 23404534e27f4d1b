"""Each kind of finding, on data that has it and on data that has not."""

from __future__ import annotations

import shutil
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from monai.transforms import Compose, EnsureChannelFirstd, LoadImaged, RandCropByLabelClassesd, Spacingd
from shared import SHARED, needs_shared

from monai_margincal.findings import SEVERITIES, Finding
from monai_margincal.statistics import scan_labels
from monai_margincal.statistics.problems import find_problems, frequency_drift
from monai_margincal.statistics.report import render_report, report_data


def save(path: Path, array: np.ndarray, affine: np.ndarray | None = None) -> str:
    nib.save(nib.Nifti1Image(array, np.eye(4) if affine is None else affine, dtype=array.dtype), path)
    return str(path)


def label(seed: int, classes: tuple[int, ...] = (0, 1, 2)) -> np.ndarray:
    array = np.random.default_rng(seed).choice(classes, (8, 7, 6)).astype(np.uint8)
    array[: len(classes), 0, 0] = classes
    return array


def found(findings: tuple[Finding, ...], kind: str) -> list[Finding]:
    return [finding for finding in findings if finding.kind == kind]


@pytest.fixture
def clean(tmp_path: Path) -> list[dict[str, str]]:
    items = []
    for case in range(5):
        affine = np.diag([-1.0, 1.0, 2.0, 1.0])
        image = save(tmp_path / f"image_{case}.nii.gz", np.zeros((8, 7, 6), np.int16), affine)
        items.append({"image": image, "label": save(tmp_path / f"label_{case}.nii.gz", label(case), affine)})
    return items


def test_clean_data_has_no_finding(clean: list[dict[str, str]]) -> None:
    assert find_problems(scan_labels(clean, num_classes=3)) == ()


def test_failed_case_is_an_error(clean: list[dict[str, str]]) -> None:
    Path(clean[2]["label"]).write_bytes(b"")
    (finding,) = found(find_problems(scan_labels(clean, num_classes=3, on_error="report")), "not counted")
    assert finding.severity == "error"
    assert finding.files == (clean[2]["label"],)


def test_absent_and_missing_classes_and_background_only(clean: list[dict[str, str]]) -> None:
    save(Path(clean[1]["label"]), np.zeros((8, 7, 6), np.uint8), np.diag([-1.0, 1.0, 2.0, 1.0]))
    findings = find_problems(scan_labels(clean, num_classes=4))
    assert [finding.kind for finding in findings] == [
        "absent class",
        "background only",
        "class missing in cases",
        "class missing in cases",
    ]
    assert "class 3 has no voxel in any of 5 cases" in findings[0].message
    assert findings[1].files == findings[2].files == (clean[1]["label"],)
    assert findings[2].message == "class 1 occurs in 4 of 5 cases"


def test_same_class_under_another_value(clean: list[dict[str, str]]) -> None:
    """labelme/issues/479: one case in which the same class got another index."""
    save(Path(clean[3]["label"]), label(3, (0, 1, 7)), np.diag([-1.0, 1.0, 2.0, 1.0]))
    (finding,) = found(find_problems(scan_labels(clean)), "contradicting label values")
    assert finding.files == (clean[3]["label"],)
    assert finding.message == "uses the label value(s) [7] where the other cases use [2]"


def test_drawn_masks(tmp_path: Path) -> None:
    files = [save(tmp_path / f"{case}.nii", label(case, (0, 255))) for case in range(4)]
    (finding,) = found(find_problems(scan_labels(files)), "0/255 mask")
    assert finding.files == tuple(files)


@pytest.mark.parametrize("change", ["shape", "shift", "flip"])
def test_image_on_another_grid(clean: list[dict[str, str]], change: str) -> None:
    """MONAI/issues/7254, /8399, MONAILabel/issues/1684: one voxel off, or shifted, or flipped."""
    shape, affine = (8, 7, 6), np.diag([-1.0, 1.0, 2.0, 1.0])
    if change == "shape":
        shape = (8, 7, 7)
    elif change == "shift":
        affine[0, 3] = 0.5
    else:
        affine[0, 0] = 1.0
    image = save(Path(clean[4]["image"]), np.zeros(shape, np.int16), affine)
    (finding,) = found(find_problems(scan_labels(clean, num_classes=3)), "geometry mismatch")
    assert finding.severity == "error"
    assert finding.files == (image, clean[4]["label"])


def test_colour_picture_beside_its_mask(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (7, 5)).save(tmp_path / "frame.png")
    Image.fromarray(np.eye(5, 7, dtype=np.uint8)).save(tmp_path / "mask.png")
    data = [{"image": str(tmp_path / "frame.png"), "label": str(tmp_path / "mask.png")}]
    assert find_problems(scan_labels(data, num_classes=2)) == ()
    Image.new("RGB", (7, 6)).save(tmp_path / "frame.png")
    (finding,) = find_problems(scan_labels(data, num_classes=2))
    assert finding.message == "the image has the shape (7, 6), its label (7, 5): expected one grid"


def test_missing_image_is_named(clean: list[dict[str, str]]) -> None:
    Path(clean[0]["image"]).unlink()
    (finding,) = found(find_problems(scan_labels(clean, num_classes=3)), "unreadable image")
    assert clean[0]["image"] in finding.message


def test_one_label_under_two_names(clean: list[dict[str, str]], tmp_path: Path) -> None:
    copy = tmp_path / "copy.nii.gz"
    shutil.copy(clean[0]["label"], copy)
    unpacked = save(tmp_path / "unpacked.nii", label(0).astype(np.uint8), np.eye(4))
    scan = scan_labels([*(item["label"] for item in clean), str(copy), unpacked], num_classes=3)
    (finding,) = found(find_problems(scan), "duplicate label")
    assert finding.files == tuple(sorted([clean[0]["label"], str(copy), unpacked]))


def test_equal_counts_are_not_yet_duplicates(tmp_path: Path) -> None:
    first = label(0)
    files = [save(tmp_path / "a.nii", first), save(tmp_path / "b.nii", np.ascontiguousarray(first[::-1]))]
    assert found(find_problems(scan_labels(files, num_classes=3)), "duplicate label") == []


def test_unusual_voxel_size(clean: list[dict[str, str]]) -> None:
    save(Path(clean[0]["label"]), label(0), np.diag([-4.0, 4.0, 2.0, 1.0]))
    (finding,) = found(
        find_problems(scan_labels([item["label"] for item in clean], num_classes=3)), "unusual voxel size"
    )
    assert finding.message.startswith("a voxel is 32 mm^3, the median of the cases is 2 mm^3")


def test_class_that_vanishes_under_resampling(tmp_path: Path) -> None:
    """DAFormer/pull/8: raw against transformed."""
    array = np.zeros((9, 9, 9), np.uint8)
    array[:6] = 1
    array[5, 5, 5] = 2
    data = [{"label": save(tmp_path / "case.nii", array)}]
    raw = scan_labels(data, num_classes=3)
    chain = Compose(
        [LoadImaged("label"), EnsureChannelFirstd("label"), Spacingd("label", (3.0, 3.0, 3.0), mode="nearest")]
    )
    coarse = scan_labels(data, num_classes=3, transform=chain)
    (finding,) = found(find_problems(raw, coarse), "class vanishes")
    assert (
        finding.message
        == "class 2 has 1 voxels in the file and none after LoadImaged -> EnsureChannelFirstd -> Spacingd"
    )
    assert frequency_drift(raw, coarse)[2] == 0.0


def test_drift_of_the_class_frequencies_by_resampling_and_by_cropping(tmp_path: Path) -> None:
    """lhoyer/DAFormer#8: crops around rare classes bias their frequency; which pipeline was counted is part of the result."""
    data = []
    for case in range(4):
        array = np.zeros((24, 24, 24), np.uint8)
        array[2:22, 2:22, 2:22] = 1
        array[8:12, 8 + case : 12 + case, 8:12] = 2
        data.append({"label": save(tmp_path / f"case_{case}.nii", array)})
    load = [LoadImaged("label"), EnsureChannelFirstd("label")]
    coarse = Spacingd("label", (2.0, 2.0, 2.0), mode="nearest")
    crop = RandCropByLabelClassesd("label", "label", (6, 6, 6), ratios=[0, 0, 1], num_classes=3, num_samples=2)
    raw, resampled, cropped = (
        scan_labels(data, num_classes=3, transform=None if chain is None else Compose([*load, *chain]))
        for chain in (None, [coarse], [coarse, crop])
    )
    kept, biased = frequency_drift(raw, resampled), frequency_drift(raw, cropped)
    assert all(0.5 < ratio < 2 for ratio in kept.values())
    assert biased[2] > 5
    assert biased[0] < 1
    for scan, words in ((resampled, "Spacingd"), (cropped, "Spacingd -> RandCropByLabelClassesd (random, seed 0)")):
        drift = report_data(raw, transformed=scan)["drift"]
        assert drift["source"].endswith(words)
        assert drift["ratios"] == pytest.approx(list(frequency_drift(raw, scan).values()))
        assert words.split(" -> ")[-1] in render_report(report_data(raw, transformed=scan))


def test_partial_annotation_is_not_taken_for_absence(tmp_path: Path) -> None:
    """nnUNet/issues/1683: a class that nobody drew in a case is unknown there, not 0."""
    data = [
        {"label": save(tmp_path / "liver.nii", label(0, (0, 1))), "annotated": [0, 1]},
        {"label": save(tmp_path / "both.nii", label(1)), "annotated": [0, 1, 2]},
    ]
    findings = find_problems(scan_labels(data, num_classes=3, annotated_key="annotated"))
    assert [finding.kind for finding in findings] == ["partial annotation"]
    assert findings[0].files == (data[0]["label"],)
    data[1]["annotated"] = [0, 1]
    with pytest.raises(ValueError, match=r"both\.nii: found voxels of the class\(es\) \[2\], expected only those"):
        scan_labels(data, num_classes=3, annotated_key="annotated")
    with pytest.raises(ValueError, match=r"data\[0\] has no key 'drawn'"):
        scan_labels(data, num_classes=3, annotated_key="drawn")


def test_order_is_by_severity(clean: list[dict[str, str]]) -> None:
    Path(clean[2]["label"]).write_bytes(b"")
    findings = find_problems(scan_labels(clean, num_classes=4, on_error="report"))
    ranks = [SEVERITIES.index(finding.severity) for finding in findings]
    assert ranks == sorted(ranks)
    assert all(finding.files for finding in findings)


@needs_shared
def test_hippocampus_outlier_is_found() -> None:
    assert SHARED is not None
    root = SHARED / "data" / "hippocampus_mr"
    labels = sorted((root / "labels").glob("*.nii.gz"))
    data = [{"image": str(root / "images" / path.name), "label": str(path)} for path in labels]
    findings = find_problems(scan_labels(data, num_classes=3))
    missing = {Path(finding.files[1]).name for finding in found(findings, "unreadable image")}
    assert missing == {"hippocampus_010.nii.gz", "hippocampus_281.nii.gz"}
    assert found(findings, "geometry mismatch") == []
