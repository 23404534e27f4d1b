"""Cross-validation by patient on the command line: a fold is trained, evaluated, and shares no patient with the others."""

from __future__ import annotations

import csv
import json

import nibabel
import numpy as np
import pytest

SCANS = [f"p{patient}_{scan}" for patient in range(3) for scan in range(1, 3)]


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    for kind in ("images", "labels"):
        (folder / kind).mkdir(parents=True)
        for index, scan in enumerate(SCANS):
            label = np.zeros((32, 32, 2), np.uint8)
            label[8:20, 8:20] = 1
            voxels = label if kind == "labels" else label.astype(np.int16) * 500 - 800 + index
            nibabel.save(nibabel.Nifti1Image(voxels, np.diag([1.0, 1, 5, 1])), folder / kind / f"{scan}.nii.gz")
    rows = [f"{scan},50,0{scan[1]}" for scan in SCANS]
    (folder / "cases.csv").write_text("\n".join(["case,age,who", *rows]))
    return folder


def test_a_fold_is_trained_and_evaluated(command, tmp_path, data):
    said = {"groups": data / "cases.csv", "group_column": "who"}
    given = {"dataset_dir": data, "folds": 3, "fold": 1, "lung_crop": "false", "device": "cpu", **said}
    run = command(tmp_path, ("train",), **given, epochs=1, patch_size=[32, 32], slices_per_volume=1)
    trained = json.loads((tmp_path / "eval" / "class_counts.json").read_text())["cases"]
    command(tmp_path, ("train", "evaluate"), **given)
    with (tmp_path / "eval" / "val_iou_raw.csv").open() as file:
        evaluated = [row[0].rsplit("/", 1)[-1].removesuffix(".nii.gz") for row in list(csv.reader(file))[1:]]
    assert len(set(evaluated)) == 2
    assert sorted({*trained, *evaluated}) == SCANS
    assert {case[:2] for case in trained}.isdisjoint(case[:2] for case in evaluated)
    assert "names that suggest" not in run.output


def test_half_of_a_patient_is_refused_in_one_line(command, tmp_path, data):
    run = command(tmp_path, ("train",), 1, dataset_dir=data, group_pattern="{group}_*", val_cases="p0_1")
    last = run.output.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert (
        "found the group 'p0' in 'validation' ('p0_1') and in 'training' ('p0_2'), expected every group in one" in last
    )
