"""MONAI Label: the bundle as a model to infer with and to train, as docs/clients.md says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import clients.monailabel_environment  # noqa: F401 (before MONAI Label)
import nibabel
import numpy as np
import pytest
import torch
from monai.bundle import ConfigWorkflow
from monailabel.datastore.local import LocalDatastore
from monailabel.tasks.infer.bundle import BundleInferTask
from monailabel.tasks.train.bundle import BundleTrainTask

from monai_margincal.bundle import bundle_dir
from monai_margincal.samples import sample_dir

NAME = "covid19_ct_lesion_coplenet"
SAMPLES = Path(sample_dir("lung_ct"))


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch) -> Path:
    """A copy of the bundle, as MONAI Label keeps one in its application's folder: results and weights go into it."""
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(bundle_dir(NAME), tmp_path / "model" / NAME, ignore=shutil.ignore_patterns("eval"))


@pytest.mark.slow
def test_inference_gives_the_mask_of_the_bundle(bundle: Path, tmp_path: Path) -> None:
    task = BundleInferTask(str(bundle), {})
    assert task.is_valid()
    information = task.info()
    assert information["labels"] == {"lesion": 1}
    assert information["type"] == "segmentation"
    assert information["version"] == json.loads((bundle / "configs" / "metadata.json").read_text())["version"]
    file, result = task({"image": str(SAMPLES / "images" / "lung2.nii.gz"), "device": "cpu"})
    assert result["label_names"] == {"lesion": 1}
    theirs = nibabel.load(file)
    mask = np.asarray(theirs.dataobj)
    Path(file).unlink()

    own = ConfigWorkflow(
        workflow_type="infer",
        config_file=str(bundle / "configs" / "inference.json"),
        logging_file=False,
        bundle_root=str(bundle),
        cases="lung2",
        output_dir=str(tmp_path / "masks"),
        device="cpu",
        num_workers=0,
    )
    own.initialize()
    own.run()
    (file,) = (tmp_path / "masks").rglob("lung2_mask.nii.gz")
    ours = nibabel.load(file)
    assert theirs.get_data_dtype() == ours.get_data_dtype() == np.uint8
    assert np.abs(theirs.affine - ours.affine).max() < 1e-4
    assert np.array_equal(mask, np.asarray(ours.dataobj))
    assert np.count_nonzero(mask) > 1000


@pytest.mark.slow
def test_training_starts_from_the_weights_and_counts_the_labels_of_the_studies(bundle: Path, tmp_path: Path) -> None:
    studies = tmp_path / "studies"
    (studies / "labels" / "final").mkdir(parents=True)
    for case in ("lung1", "lung2"):
        shutil.copy(SAMPLES / "images" / f"{case}.nii.gz", studies)
        label = nibabel.load(SAMPLES / "labels" / f"{case}.nii.gz")
        changed = np.array(label.dataobj)
        changed[:, : changed.shape[1] // 8] = 1  # no label of the bundle's own sample has as many voxels
        nibabel.save(nibabel.Nifti1Image(changed, label.affine), studies / "labels" / "final" / f"{case}.nii.gz")
    datastore = LocalDatastore(str(studies), extensions=["*.nii.gz"])
    trained_on = Path(datastore.datalist()[0]["label"])

    before = torch.load(bundle / "models" / "model.pt", weights_only=True)
    task = BundleTrainTask(str(bundle), {})
    assert task.is_valid()
    task({"model": NAME, "device": "cpu", "max_epochs": 1, "val_split": 0.5, "pretrained": True}, datastore)
    after = torch.load(bundle / "models" / "model.pt", weights_only=True)
    # one step of AdamW moves no weight by more than about the learning rate
    steps = [(after[name] - value).abs().max() for name, value in before.items() if value.is_floating_point()]
    assert 0 < max(steps) < 2e-4
    counted = json.loads((bundle / "eval" / "class_counts.json").read_text())
    assert counted["counts"] == np.bincount(np.asarray(nibabel.load(trained_on).dataobj).ravel(), minlength=2).tolist()
