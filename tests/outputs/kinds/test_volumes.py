"""The table of volumes: voxel volume from any affine, one row per scan, a file that is never half written."""

from __future__ import annotations

import csv
import multiprocessing

import nibabel
import numpy as np
import pytest
import torch
from monai.data import MetaTensor

from monai_margincal.outputs import Outputs
from monai_margincal.outputs.kinds.volumes import VolumeTable

NAMES = ["background", "lesion"]


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def mask(name="ct.nii.gz", lesion=5, affine=None, **meta):
    voxels = torch.zeros(1, 4, 4, 4, dtype=torch.uint8)
    voxels.view(-1)[:lesion] = 1
    return MetaTensor(
        voxels, affine=None if affine is None else torch.as_tensor(affine), meta={"filename_or_obj": name, **meta}
    )


def test_an_affine_without_volume_is_refused(tmp_path):
    with pytest.raises(ValueError, match="which spans no volume, expected three directions in mm"):
        VolumeTable(tmp_path / "v.csv", NAMES).write(mask(affine=np.diag([1.0, 1, 0, 1])))
    assert not (tmp_path / "v.csv").exists()


def test_equals_nibabel_by_header(tmp_path):
    affine = np.array([[0.0, -0.7, 0, 1], [0.6, 0, 0, 2], [0, 0, -5, 3], [0, 0, 0, 1]])
    image = nibabel.Nifti1Image(np.zeros((4, 4, 4), np.uint8), affine)
    VolumeTable(tmp_path / "v.csv", NAMES).write(mask(affine=affine, lesion=7))
    (row,) = rows(tmp_path / "v.csv")
    assert float(row["voxel_volume_mm3"]) == pytest.approx(np.prod(image.header.get_zooms()), rel=1e-6)
    assert row["lesion_voxels"] == "7"
    assert float(row["lesion_ml"]) == pytest.approx(7 * 0.7 * 0.6 * 5 / 1000)


def test_one_row_per_scan_and_a_second_run_replaces_it(tmp_path):
    table = VolumeTable(tmp_path / "new" / "v.csv", NAMES)
    table.write(mask("a.nii.gz", 1))
    table.write(mask("b, the second.nii.gz", 0, cropped_to="lungs"))
    VolumeTable(tmp_path / "new" / "v.csv", NAMES).write(mask("a.nii.gz", 3))
    found = {row["image"]: row for row in rows(tmp_path / "new" / "v.csv")}
    assert {name: row["lesion_voxels"] for name, row in found.items()} == {"a.nii.gz": "3", "b, the second.nii.gz": "0"}
    assert found["b, the second.nii.gz"]["cropped_to"] == "lungs"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["v.csv"]


def test_several_classes(tmp_path):
    labels = torch.tensor([0, 1, 1, 2, 2, 2, 0, 0], dtype=torch.uint8).reshape(1, 2, 2, 2)
    VolumeTable(tmp_path / "v.csv", ["background", "a", "b"]).write(MetaTensor(labels))
    (row,) = rows(tmp_path / "v.csv")
    assert (row["a_voxels"], row["b_voxels"], row["b_ml"]) == ("2", "3", "0.003")


def test_what_does_not_fit_is_refused(tmp_path):
    table = VolumeTable(tmp_path / "v.csv", NAMES)
    full = MetaTensor(torch.full((1, 2, 2, 2), 3, dtype=torch.uint8), meta={"filename_or_obj": "ct.nii.gz"})
    with pytest.raises(ValueError, match=r"ct\.nii\.gz: found class 3, expected one of"):
        table.write(full)
    (tmp_path / "v.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"v\.csv: found the columns \['a', 'b'\]"):
        table.write(mask())
    with pytest.raises(ValueError, match=r"v\.csv: found the columns \['a', 'b'\]"):
        table.write_error("ct.nii.gz", "damaged")
    assert (tmp_path / "v.csv").read_text() == "a,b\n1,2\n", "the user's file stays"


def test_the_kind_writes_below_the_folder_of_results_or_where_it_is_told(tmp_path):
    for file, path in (("volumes.csv", "out/volumes.csv"), ("x/v.csv", "out/x/v.csv"), (tmp_path / "v.csv", "v.csv")):
        (volumes,) = Outputs("volumes", tmp_path / "out", class_names=NAMES, volumes={"file": file}).chosen
        volumes.save({"pred": mask("a.nii.gz", 4)}, "pred")
        volumes.note_failure("b.nii.gz", "b.nii.gz: damaged")
        assert volumes.reasons == tmp_path / path
        assert [(row["image"], row["lesion_voxels"], row["error"]) for row in rows(tmp_path / path)] == [
            ("a.nii.gz", "4", ""),
            ("b.nii.gz", "", "b.nii.gz: damaged"),
        ]


def job(path, number, start):
    table = VolumeTable(path, NAMES)
    start.wait(60)
    for case in range(15):
        table.write(mask(f"{number}_{case}.nii.gz", lesion=case))


def test_several_processes_that_write_one_table_lose_no_row(tmp_path):
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(4)
    path = tmp_path / "v.csv"
    jobs = [context.Process(target=job, args=(path, number, start)) for number in range(4)]
    for process in jobs:
        process.start()
    for process in jobs:
        process.join(120)
    assert [process.exitcode for process in jobs] == [0] * 4
    found = {row["image"]: row["lesion_voxels"] for row in rows(path)}
    assert found == {f"{number}_{case}.nii.gz": str(case) for number in range(4) for case in range(15)}
    assert [path.name for path in tmp_path.iterdir()] == ["v.csv"], "the lock is gone"
