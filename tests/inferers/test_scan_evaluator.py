"""One bad scan does not take the others with it, and is not forgotten: listed, no stale result, an error at the end."""

from __future__ import annotations

import csv
import logging

import nibabel
import numpy as np
import pytest
import torch
from monai.data import DataLoader
from monai.transforms import Compose, EnsureChannelFirstd, LoadImaged

from monai_margincal.datasets import ScanDataset
from monai_margincal.errors import CaseError
from monai_margincal.inferers import FailedScans, ScanEvaluator
from monai_margincal.outputs import Outputs, SaveImageOutputsd


class Marks(torch.nn.Module):
    """Voxels above 0 are lesion; a scan full of 7s cannot be segmented."""

    def forward(self, image):
        if (image == 7).all():
            raise torch.OutOfMemoryError("out of memory. Tried to allocate 3 GiB")
        return (image > 0).to(torch.uint8)


def write(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(array.astype(np.int16), np.eye(4)), path)


@pytest.fixture
def folder(tmp_path):
    for case in "abcd":
        write(tmp_path / "data" / "x" / f"{case}.nii.gz", np.random.RandomState(0).randint(-9, 9, (9, 9, 3)))
    return tmp_path / "data"


def evaluator(folder, workers=0, **options):
    out, root = folder.parent / "out", str(folder)
    data = [{"image": str(path)} for path in sorted((folder / "x").iterdir())]
    read = Compose([LoadImaged("image"), EnsureChannelFirstd("image")])
    outputs = Outputs("mask,volumes", out, data_root_dir=root, class_names=["background", "lesion"])
    return ScanEvaluator(
        **{
            "device": "cpu",
            "val_data_loader": DataLoader(
                ScanDataset(data, read, data_root_dir=root, hand_over_errors=True), num_workers=workers
            ),
            "network": Marks(),
            "postprocessing": Compose([SaveImageOutputsd("pred", outputs)]),
            "failed_scans": FailedScans(outputs),
            **options,
        }
    )


def table(folder):
    with (folder.parent / "out" / "volumes.csv").open(newline="") as file:
        return {row["image"].rsplit("/", 1)[1][0]: row for row in csv.DictReader(file)}


def masks(folder):
    return sorted(path.name for path in (folder.parent / "out").rglob("*mask*"))


def spoil(folder, case):
    path = folder / "x" / f"{case}.nii.gz"
    path.write_bytes(path.read_bytes()[:200])
    return path


@pytest.mark.parametrize("workers", [0, 1])
def test_the_others_are_done_and_the_bad_ones_listed(folder, workers, caplog):
    bad = [spoil(folder, "a"), folder / "x" / "c.nii.gz"]
    bad[1].write_text("no image")
    with caplog.at_level(logging.ERROR), pytest.raises(CaseError) as raised:
        evaluator(folder, workers).run()
    where = folder.parent / "out" / "volumes.csv"
    assert str(raised.value) == f"2 of 4 scans failed (reasons in {where}): {bad[0]}, {bad[1]}"
    assert masks(folder) == ["b_mask.nii.gz", "d_mask.nii.gz"]
    rows = table(folder)
    assert {case for case, row in rows.items() if row["error"]} == {"a", "c"}
    assert rows["a"]["error"].startswith(f"{bad[0]}: cannot be read, expected ")
    assert rows["a"]["lesion_ml"] == ""
    assert float(rows["b"]["lesion_ml"]) > 0
    last = caplog.records[-1].getMessage().splitlines()
    assert last[0] == "2 of 4 scans failed:"
    assert [line.split(": ")[0].strip() for line in last[1:]] == [str(path) for path in bad]


def test_one_cause_for_all_is_said_at_once(folder):
    for case in "abd":
        write(folder / "x" / f"{case}.nii.gz", np.full((9, 9, 3), 7))
    with pytest.raises(CaseError) as raised:
        evaluator(folder).run()
    names = ", ".join(str(folder / "x" / f"{case}.nii.gz") for case in "abd")
    cause = "cannot be segmented: OutOfMemoryError: out of memory. Tried to allocate 3 GiB"
    assert str(raised.value) == f"3 of 4 scans failed: {names}: {cause}"


def test_a_scan_that_cannot_be_segmented_or_saved(folder):
    write(folder / "x" / "b.nii.gz", np.full((9, 9, 3), 7))
    (folder.parent / "out" / "x" / "d_mask.nii.gz").mkdir(parents=True)  # nothing can be saved there
    with pytest.raises(CaseError, match=r"^2 of 4 scans failed .*x/b\.nii\.gz, .*x/d\.nii\.gz$"):
        evaluator(folder).run()
    rows = table(folder)
    message = "b.nii.gz: cannot be segmented: OutOfMemoryError: out of memory. Tried to allocate 3 GiB"
    assert rows["b"]["error"].endswith(message)
    assert "d.nii.gz: cannot be segmented: " in rows["d"]["error"]
    assert rows["a"]["error"] == rows["c"]["error"] == ""


def test_results_of_an_earlier_run_do_not_pass_for_fresh_ones(folder):
    evaluator(folder).run()
    assert masks(folder) == [f"{case}_mask.nii.gz" for case in "abcd"]
    whole = spoil(folder, "a").read_bytes()
    with pytest.raises(CaseError, match=r"^1 of 4 scans failed: .*x/a\.nii\.gz: cannot be read, expected .*: \w+: "):
        evaluator(folder).run()
    assert masks(folder) == ["a_mask.nii.gz.outdated", *(f"{case}_mask.nii.gz" for case in "bcd")]
    assert table(folder)["a"]["lesion_voxels"] == ""
    write(folder / "x" / "a.nii.gz", np.ones((9, 9, 3)))
    evaluator(folder).run()
    assert (folder / "x" / "a.nii.gz").read_bytes() != whole
    assert "a_mask.nii.gz" in masks(folder)
    assert table(folder)["a"] | {"error": ""} == table(folder)["a"]
    assert table(folder)["a"]["lesion_voxels"] == "243"


def test_failures_are_those_of_the_last_run(folder):
    spoil(folder, "a")
    run = evaluator(folder)
    for _ in range(2):
        with pytest.raises(CaseError, match=r"^1 of 4 scans failed"):
            run.run()


@pytest.mark.parametrize("options", [{"stop_on_error": True}, {"failed_scans": None}])
def test_stop_at_the_first(folder, options):
    bad = spoil(folder, "b")
    spoil(folder, "c")
    with pytest.raises(CaseError) as raised:
        evaluator(folder, **options).run()
    assert str(raised.value).startswith(f"{bad}: cannot be read, expected ")
    assert masks(folder) == ["a_mask.nii.gz"]


def test_an_error_that_is_not_about_a_scan_ends_the_run(folder):
    from ignite.engine import Events

    run = evaluator(folder)
    run.add_event_handler(Events.STARTED, lambda: [][0])
    with pytest.raises(IndexError):
        run.run()
    assert masks(folder) == []


def test_a_table_with_other_columns_is_kept(folder):
    path = folder.parent / "out" / "volumes.csv"
    path.parent.mkdir()
    path.write_text("image,ml\na,1\n")
    with pytest.raises(ValueError, match=r"volumes\.csv: found the columns \['image', 'ml'\], expected"):
        evaluator(folder).run()
    assert path.read_text() == "image,ml\na,1\n"


def test_without_files_and_without_a_table(caplog):
    data = [{"image": torch.full((1, 1, 2, 2, 2), 7.0)}, {"image": torch.zeros(1, 1, 2, 2, 2)}]
    run = ScanEvaluator(device="cpu", val_data_loader=data, network=Marks(), failed_scans=FailedScans())
    with pytest.raises(CaseError, match=r"^1 of 2 scans failed: in memory: cannot be segmented: OutOfMemoryError"):
        run.run()
