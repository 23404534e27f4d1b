"""NVFlare's simulator runs the documented job, and its total is the centralised one."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from monai_margincal.statistics import count_labels
from monai_margincal.statistics.federated import LabelCountStatistics, read_federated_counts

needs_nvflare = pytest.mark.skipif(
    importlib.util.find_spec("nvflare") is None, reason="needs the extra monai-margincal[federated]"
)

JOB = Path(__file__).resolve().parents[2] / "docs" / "federated_job"


@pytest.mark.slow
@needs_nvflare
def test_simulated_job_equals_the_centralised_count(tmp_path: Path) -> None:
    for site, cases in (("site-1", 2), ("site-2", 3)):
        (tmp_path / "data" / site / "labels").mkdir(parents=True)
        for case in range(cases):
            array = (
                np.random.default_rng([cases, case])
                .integers(0, 2 if site == "site-1" else 3, (9, 8, 7))
                .astype(np.uint8)
            )
            nib.save(nib.Nifti1Image(array, np.eye(4)), tmp_path / "data" / site / "labels" / f"{site}_{case}.nii.gz")
    job = shutil.copytree(JOB, tmp_path / "job")
    config = job / "app" / "config" / "config_fed_client.json"
    content = json.loads(config.read_text())
    content["components"][0]["args"]["data"] = str(tmp_path / "data" / "{site}" / "labels" / "*.nii.gz")
    config.write_text(json.dumps(content))
    workspace = tmp_path / "workspace"
    command = [sys.executable, "-m", "nvflare.private.fed.app.simulator.simulator", str(job), "-w", str(workspace)]
    done = subprocess.run([*command, "-n", "2", "-t", "2"], capture_output=True, text=True, timeout=300)
    results = list(workspace.rglob("label_counts.json"))
    assert len(results) == 1, done.stdout[-3000:] + done.stderr[-3000:]
    found = read_federated_counts(results[0])
    central = count_labels(f"{tmp_path}/data/*/labels/*.nii.gz", num_classes=3)
    assert found.counts.tolist() == central.counts.tolist()
    assert found.ids == (0, 1, 2)


@needs_nvflare
def test_undeclared_classes_are_refused() -> None:
    with pytest.raises(ValueError, match="neither num_classes nor ids is given"):
        LabelCountStatistics("labels/*.nii.gz")


@pytest.mark.skipif(importlib.util.find_spec("nvflare") is not None, reason="NVFlare is installed")
def test_without_nvflare_the_generator_says_what_is_missing() -> None:
    with pytest.raises(ImportError, match=r'needs nvflare, .* pip install "monai-margincal\[federated\]"'):
        LabelCountStatistics("labels/*.nii.gz", num_classes=2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "found no class"),
        ({"age": {}}, "found the feature 'age'"),
        ({"class 0": {"count": {"site-1": {"labels": 3}}}}, "found no total for 'class 0'"),
        ({"class 0": {"count": {"site-1": {"labels": 3}, "Global": {"labels": 4}}}}, "adds up to 3 over the sites"),
    ],
)
def test_foreign_results_are_refused(tmp_path: Path, content: object, message: str) -> None:
    path = tmp_path / "label_counts.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        read_federated_counts(path)


@pytest.mark.parametrize(
    "content",
    [
        "3",
        "[]",
        "{",
        '{"class 0": 3}',
        '{"class 0": {"count": 3}}',
        '{"class x": {"count": {"Global": {"labels": 0}}}}',
    ],
)
def test_every_wrong_result_is_an_error_that_names_the_file(tmp_path: Path, content: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"^/.*/result\.json: "):
        read_federated_counts(path)
