"""The data that a bundle would train on, and the one rule for what lies on one grid."""

from __future__ import annotations

import json
from pathlib import Path

import nibabel
import numpy as np
import pytest
from monai.bundle import ConfigParser
from monai.transforms import Compose, EnsureChannelFirstd, LoadImaged
from PIL import Image

from monai_margincal.bundle import bundle_dir
from monai_margincal.bundle.check.data_lists import check_data
from monai_margincal.geometry import GRID_TOLERANCE
from monai_margincal.statistics import find_problems, scan_labels
from monai_margincal.transforms import CheckSameGridd

AFFINE = np.diag([-0.7, -0.7, 5.0, 1.0])


def case(folder, shift):
    """Image and label, the label moved by so many voxels along the first axis."""
    moved = AFFINE.copy()
    moved[0, 3] += shift * 0.7
    label = np.zeros((6, 5, 4), np.uint8)
    label[2:4, 2, 1:3] = 1
    item = {"image": f"{folder}/image.nii.gz", "label": f"{folder}/label.nii.gz"}
    nibabel.save(nibabel.Nifti1Image(label.astype(np.int16), AFFINE), item["image"])
    nibabel.save(nibabel.Nifti1Image(label, moved), item["label"])
    return item


def grids(item, **given):
    """What training, findings and check-bundle say of a case: whether each takes its grids for one."""
    check = CheckSameGridd(["image", "label"], *given.values())
    data = Compose([LoadImaged(["image", "label"]), EnsureChannelFirstd(["image", "label"])])(item)
    trains = True
    try:
        check(data)
    except ValueError:
        trains = False
    problems = find_problems(scan_labels([item], num_classes=2), grid_tolerance=check.tolerance)
    config = {"train": {"dataset": {"data": [item]}}, "num_classes": 2, **given}
    found = check_data(ConfigParser(config), "configs/train.json")
    return trains, not any(p.severity == "error" for p in problems), not any(f.severity == "error" for f in found)


@pytest.mark.parametrize(("shift", "fits"), [(0.0, True), (0.1, True), (0.24, True), (0.26, False), (0.5, False)])
def test_training_findings_and_check_bundle_have_one_rule(tmp_path, shift, fits):
    assert grids(case(tmp_path, shift)) == (fits, fits, fits)


@pytest.mark.parametrize(("tolerance", "fits"), [(0.6, True), (None, True), (0.4, False)])
def test_a_tolerance_given_to_the_bundle_holds_in_all_three(tmp_path, tolerance, fits):
    assert grids(case(tmp_path, 0.5), grid_tolerance=tolerance) == (fits, fits, fits)


@pytest.mark.parametrize(("void", "errors"), [(None, 1), (255, 0), (254, 1)])
def test_a_void_label_is_that_of_the_configuration(tmp_path, void, errors):
    for name, values in (("image", [[0, 9]]), ("label", [[1, 255]]), ("other", [[0, 1]])):
        Image.fromarray(np.array(values, np.uint8)).save(tmp_path / f"{name}.png")
    items = [{"image": f"{tmp_path}/image.png", "label": f"{tmp_path}/{name}.png"} for name in ("label", "other")]
    config = {"train": {"dataset": {"data": items}}, "num_classes": 2, "void_label": void}
    found = [f for f in check_data(ConfigParser(config), "configs/train.json") if f.severity == "error"]
    assert len(found) == errors
    assert not found or "label.png: found the label value(s) 255" in found[0].message


def test_the_shipped_bundle_says_the_default():
    config = json.loads(Path(bundle_dir("covid19_ct_lesion_coplenet"), "configs", "train.json").read_text())
    assert config["grid_tolerance"] == GRID_TOLERANCE == CheckSameGridd("image").tolerance


def messages(training, validation):
    """What the check says of two lists of cases without labels."""
    config = {"train": {"dataset": {"data": training}}, "validate": {"dataset": {"data": validation}}}
    return [str(finding) for finding in check_data(ConfigParser(config), "configs/train.json")]


def test_a_patient_in_training_and_in_validation(tmp_path):
    image = {"image": str(tmp_path)}
    other = {"image": str(tmp_path.parent)}
    place = "in 'train#dataset#data' ('a') and in 'validate#dataset#data' ('b'), expected every group in one part"
    assert messages([{**image, "case": "a", "group": "p"}], [{**other, "case": "b", "group": "p"}]) == [
        f"error: a (and 1 more): group in two parts: found the group 'p' {place}"
    ]
    assert messages([{**image, "case": "a", "group": "p"}], [{**other, "case": "b", "group": "q"}]) == []
    cases = [{**image, "case": "p1_1"}, {**image, "case": "p2_1"}], [{**other, "case": "p1_2"}]
    (found,) = messages(*cases)
    assert found.startswith(
        "warning: p1_1 (and 1 more): group in two parts: found names that suggest the group 'p1' in"
    )
    assert messages([{**image, "case": "case_1"}], [{**other, "case": "case_2"}]) == []
