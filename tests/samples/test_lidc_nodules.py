"""The nodules that travel with the package: chosen by names alone, no patient in two parts, licensed, unchanged."""

from __future__ import annotations

import csv
import gzip
import hashlib
import subprocess
import sys
from pathlib import Path

import nibabel
import numpy as np
import pytest
from shared import SHARED, needs_shared

from monai_margincal.samples import sample_dir

FOLDER = Path(sample_dir("lidc_nodules"))
SCRIPT = Path(__file__).parents[2] / ".ci" / "nodule_subset"


@pytest.fixture(scope="module")
def rows():
    with (FOLDER / "cases.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_no_patient_is_in_two_parts_or_there_twice(rows):
    assert len({row["patient_id"] for row in rows}) == len(rows) == 190
    assert {part: sum(row["part"] == part for row in rows) for part in ("training", "held_out")} == {
        "training": 150,
        "held_out": 40,
    }


def test_the_held_out_patients_are_the_first_by_sha_256(rows):
    order = sorted(rows, key=lambda row: hashlib.sha256(row["patient_id"].encode()).hexdigest())
    assert [row["part"] for row in order] == ["held_out"] * 40 + ["training"] * 150


def test_table_and_files_agree(rows):
    for kind in ("images", "labels"):
        assert {path.name for path in (FOLDER / kind).iterdir()} == {f"{row['case']}.nii.gz" for row in rows}
    for row in rows:
        image, label = (nibabel.load(FOLDER / kind / f"{row['case']}.nii.gz") for kind in ("images", "labels"))
        assert image.get_data_dtype() == np.int16
        assert image.shape == label.shape
        np.testing.assert_allclose(image.affine, label.affine, atol=1e-3)
        truth = np.asanyarray(label.dataobj)
        assert [truth.size, int((truth == 1).sum())] == [int(row["voxels"]), int(row["nodule_voxels"])]
        assert set(np.unique(truth)) == {0, 1}


def test_small_enough_to_travel():
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) <= 8e6


def test_licence_and_attribution_travel_with_the_files():
    assert "Attribution 3.0 Unported" in (FOLDER / "LICENSE-CC-BY-3.0.md").read_text(encoding="utf-8")
    attribution = (FOLDER / "ATTRIBUTION.md").read_text(encoding="utf-8")
    for words in ("10.7937/K9/TCIA.2015.LO9QL9SX", "Clark K", "National Cancer Institute", "What was changed"):
        assert words in attribution
    project = (SCRIPT.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert all(f"lidc_nodules/{name}" in project for name in ("ATTRIBUTION.md", "LICENSE-CC-BY-3.0.md"))


@needs_shared
def test_the_script_makes_them_again_and_changes_no_voxel(tmp_path):
    source = SHARED / "data" / "lidc_nodules"
    subprocess.run([sys.executable, str(SCRIPT), str(source), str(tmp_path)], check=True)
    made = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert len(made) == 381
    assert (tmp_path / "cases.csv").read_text() == (FOLDER / "cases.csv").read_text()
    for path in made:
        if path.suffix == ".gz":
            content = gzip.decompress((FOLDER / path).read_bytes())
            assert content == gzip.decompress((tmp_path / path).read_bytes())
            assert content == gzip.decompress((source / path).read_bytes())
