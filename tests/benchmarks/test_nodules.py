"""The table of what masks of nodules are worth, against sums by hand."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import nibabel
import numpy as np
import pytest

_spec = importlib.util.spec_from_file_location("nodules_benchmark", Path(__file__).with_name("nodules.py"))
nodules = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(nodules)


def save(path, voxels):
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(np.array(voxels, np.uint8).reshape(-1, 1, 1), np.eye(4)), path)


def test_the_table(tmp_path, capsys):
    """Two nodules of one patient, IoU 1/2 and 1, one of another, IoU 0; the case without a mask is left out."""
    truths = {"a": ("p", [1, 1, 0, 0]), "b": ("p", [1, 1, 1, 0]), "c": ("q", [0, 1, 0, 0]), "d": ("r", [1, 1, 1, 1])}
    for case, (_, voxels) in truths.items():
        save(tmp_path / "labels" / f"{case}.nii.gz", voxels)
    lines = [f"{case},{patient},{sum(voxels)},{1 + (case == 'c')}" for case, (patient, voxels) in truths.items()]
    (tmp_path / "cases.csv").write_text("\n".join(["case,patient_id,nodule_voxels,texture_class", *lines]))
    for case, mask in {"a": [1, 0, 0, 0], "b": [1, 1, 1, 0], "c": [0, 0, 1, 0]}.items():
        save(tmp_path / "masks" / "images" / f"{case}_mask.nii.gz", mask)
    nodules.main(tmp_path, tmp_path / "masks")
    table = capsys.readouterr().out.splitlines()[2:]
    # patients are drawn: p alone has 4/5 and 3/4, q alone 0
    assert table[0] == "| all | 3 | 2 | 0.571 (0.000 to 0.800) | 0.500 (0.000 to 0.750) | 33% |"
    assert table[1].startswith("| smallest third by voxels | 1 | 1 | 0.000")
    assert table[3].startswith("| largest third by voxels | 1 | 1 | 1.000")
    assert [line.split("|")[1].strip() for line in table[4:]] == ["solid", "part-solid"]


def test_intervals_are_those_of_whole_patients():
    """A hundred equal nodules of one patient tell no more than one."""
    both, either, patients = np.array([1] * 100 + [0]), np.array([2] * 100 + [1]), np.array(["p"] * 100 + ["q"])
    (_, low, high), _ = nodules.intervals(both, either, patients)
    assert (low, high) == (0, pytest.approx(0.5))
