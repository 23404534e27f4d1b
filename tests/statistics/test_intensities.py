"""A class drawn under another's index: the label's values give nothing away, the image does."""

from __future__ import annotations

from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared import SHARED, needs_shared

from monai_margincal.statistics import find_contradicting_intensities, scan_labels
from monai_margincal.statistics.intensities import class_intensities


def data_set(folder: Path, cases: int, swapped: tuple[int, ...] = (), gain: bool = False, levels=(0.0, 100.0, 300.0)):
    """Three classes of stated brightness; in the ``swapped`` cases 1 and 2 are drawn as each other."""
    data = []
    for case in range(cases):
        rng = np.random.default_rng(case)
        truth = rng.choice(3, (12, 10, 6), p=(0.7, 0.2, 0.1)).astype(np.uint8)
        image = np.array(levels)[truth] + rng.normal(0, 30, truth.shape)
        if gain:
            image = image * rng.uniform(0.1, 10) + rng.uniform(-500, 500)
        label = np.array([0, 2, 1], np.uint8)[truth] if case in swapped else truth
        item = {key: str(folder / f"{key}_{case}.nii.gz") for key in ("image", "label")}
        nib.save(nib.Nifti1Image(image.astype(np.float32), np.eye(4)), item["image"])
        nib.save(nib.Nifti1Image(label, np.eye(4)), item["label"])
        data.append(item)
    return data


def named(findings):
    return [Path(finding.files[1]).name for finding in findings]


@pytest.mark.parametrize("gain", [False, True], ids=["hounsfield", "any scanner"])
def test_the_swapped_cases_are_named(tmp_path: Path, gain: bool) -> None:
    """wkentaro/labelme#479: the same class gets another index in some image, the set of values stays."""
    data = data_set(tmp_path, 14, swapped=(3, 8), gain=gain)
    findings = find_contradicting_intensities(scan_labels(data, num_classes=3))
    assert named(findings) == ["label_3.nii.gz", "label_8.nii.gz"]
    assert {finding.severity for finding in findings} == {"warning"}
    assert "class 1 is brighter than class 2, the other cases say darker" in findings[0].message
    assert findings[0].files == (data[3]["image"], data[3]["label"])


@pytest.mark.parametrize("gain", [False, True])
def test_clean_data_give_no_finding(tmp_path: Path, gain: bool) -> None:
    assert find_contradicting_intensities(scan_labels(data_set(tmp_path, 12, gain=gain), num_classes=3)) == ()


def test_classes_of_one_brightness_give_no_finding(tmp_path: Path) -> None:
    """Nothing can be told then, and nothing is."""
    data = data_set(tmp_path, 12, swapped=(3,), levels=(0.0, 200.0, 201.0))
    assert find_contradicting_intensities(scan_labels(data, num_classes=3)) == ()


def test_few_cases_and_cases_without_image_give_none(tmp_path: Path) -> None:
    data = data_set(tmp_path, 6, swapped=(2,))
    assert named(find_contradicting_intensities(scan_labels(data, num_classes=3))) == ["label_2.nii.gz"]
    assert find_contradicting_intensities(scan_labels(data[:4], num_classes=3)) == ()
    labels_only = [{"label": item["label"]} for item in data]
    assert find_contradicting_intensities(scan_labels(labels_only, num_classes=3)) == ()
    Path(data[0]["image"]).write_bytes(b"")
    assert named(find_contradicting_intensities(scan_labels(data, num_classes=3))) == ["label_2.nii.gz"]


@settings(deadline=None, max_examples=50)
@given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    ids=st.sets(st.integers(0, 600), min_size=1, max_size=5),
    seed=st.integers(0, 99),
)
def test_equals_numpy_class_by_class(shape: list[int], ids: set[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    label = rng.choice([*sorted(ids), 777], shape)
    image = rng.integers(-1000, 1000, shape).astype(np.int16)
    found = class_intensities(image, label, ids)
    expected = {k: (image[label == k].mean(), image[label == k].std()) for k in sorted(ids) if (label == k).any()}
    assert list(found) == list(expected)
    for class_id, values in expected.items():
        assert found[class_id] == pytest.approx(values, abs=1e-6)


def test_other_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(2, 3\), its label \(3, 2\)"):
        class_intensities(np.zeros((2, 3)), np.zeros((3, 2), int), [0])


@needs_shared
def test_real_scans_are_consistent_and_an_inverted_mask_is_found(tmp_path: Path) -> None:
    """Hippocampus MR of many scanners: grey values have no unit there."""
    root = SHARED / "data" / "hippocampus_mr"
    data = []
    for path in sorted((root / "images").glob("*.nii.gz"))[:20]:
        data.append({"image": str(path), "label": str(root / "labels" / path.name)})
    assert len(data) == 20
    assert find_contradicting_intensities(scan_labels(data, num_classes=3)) == ()
    ct = SHARED / "data" / "lung_ct"
    lung = {key: ct / f"lung2_crop_{key}.nii.gz" for key in ("image", "label")}
    image, label = (np.asarray(nib.load(path).dataobj) for path in lung.values())
    cases = []
    for case in range(8, 19):
        part = {"image": image[..., case : case + 1], "label": label[..., case : case + 1]}
        if case == 12:
            part["label"] = 1 - part["label"]
        for key, array in part.items():
            nib.save(nib.Nifti1Image(array, np.eye(4)), tmp_path / f"{key}{case}.nii.gz")
        cases.append({key: str(tmp_path / f"{key}{case}.nii.gz") for key in part})
    findings = find_contradicting_intensities(scan_labels(cases, num_classes=2))
    assert named(findings) == ["label12.nii.gz"]
