"""What the nodule weights are trained with: whole patients in each fold, and slices of lungs in which there is no nodule."""

from __future__ import annotations

import json
from collections import Counter

import itk
import nibabel
import numpy as np
import pytest
from nodule_list import datalist
from shared import SHARED, needs_shared

from monai_margincal.cli.demo.patients import demo_patients


@needs_shared
def test_five_folds_of_whole_patients_of_which_the_first_has_those_of_the_demo():
    listed = datalist.boxes(SHARED / "data" / "lidc_nodules")
    folds = datalist.fold_of_groups(listed)
    assert len(folds) == 439
    assert {folds[patient.name] for patient in demo_patients()["held_out"]} == {0}
    boxes = Counter(folds[item["group"]] for item in listed)
    assert sorted(boxes) == [0, 1, 2, 3, 4]
    assert max(boxes.values()) - min(boxes.values()) <= 5


@pytest.fixture
def scan(tmp_path):
    """A scan of 6 slices of other values each, patient axes LPS as NRRD has them, and a lesion in slice 2."""
    voxels = np.broadcast_to(np.arange(6)[:, None, None] * 100 - 900, (6, 40, 50)).astype(np.int16)
    lesion = np.zeros(voxels.shape, np.uint8)
    lesion[2, 4, 4] = 1
    for kind, values in (("image", voxels), ("label", lesion)):
        image = itk.image_from_array(values.copy())
        image.SetSpacing([0.6, 0.6, 5.0])
        image.SetOrigin([10.0, 20.0, -300.0])
        itk.imwrite(image, str(tmp_path / f"scan_{kind}.nrrd"))
    return tmp_path


def test_slices_without_a_lesion_become_cases_with_an_empty_label_at_their_place(scan, tmp_path):
    listed = datalist.slices_without_lesion(scan, tmp_path / "slices")
    assert [item["case"] for item in listed] == [f"scan_slice{number:02}" for number in (0, 1, 3, 4, 5)]
    assert {item["group"] for item in listed} == {"scan"}
    for item, number in zip(listed, (0, 1, 3, 4, 5), strict=True):
        image, label = (nibabel.load(item[key]) for key in ("image", "label"))
        assert image.shape == label.shape == (40, 50, 1)
        assert (np.asanyarray(image.dataobj) == number * 100 - 900).all()
        assert not np.asanyarray(label.dataobj).any()
        # RAS in mm: the scan begins at -300 and goes up by 5
        assert (image.affine @ [0, 0, 0, 1])[2] == pytest.approx(-300 + 5 * number)
        assert np.allclose(image.affine, label.affine)


def test_the_list_has_a_fold_for_every_box_and_every_slice(scan, tmp_path, monkeypatch):
    boxes = tmp_path / "boxes"
    boxes.mkdir()
    rows = [f"p{number}_{box},p{number}" for number in range(18) for box in (1, 2)]
    (boxes / "cases.csv").write_text("\n".join(["case,patient_id", *rows]))
    monkeypatch.setattr(datalist, "demo_patients", lambda: {"held_out": []})
    datalist.main(boxes, scan, tmp_path / "lists")
    listed = json.loads((tmp_path / "lists" / "folds.json").read_text())["training"]
    assert len(listed) == 36 + 5
    folds = {}
    for item in listed:
        folds.setdefault(item["group"], set()).add(item["fold"])
    assert all(len(found) == 1 for found in folds.values())
    # two ninths of the patients in each fold, one in that of the demo; scans are in none of its
    assert Counter(item["fold"] for item in listed[:36]) == {0: 4, 1: 8, 2: 8, 3: 8, 4: 8}
    assert folds["scan"] == {1}
